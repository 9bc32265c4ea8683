/**
 * A hostname of a listener can be used by HTTPRoutes or by GRPCRoutes, not by both (Gateway API,
 * GRPCRouteSpec.hostnames). If hostnames of two routes of different kinds overlap, the older route is
 * served, unless it has itself lost to a third route.
 *
 * Each route contributes its hostnames under several keys, so that a route reads only claims that
 * overlap with its own:
 *
 * ```
 *   a.example.com    claims  =a.example.com   <.example.com  <.com  <
 *   *.example.com    claims  *.example.com    <.example.com  <.com  <
 *   every host       claims  *                <
 *
 *   a.example.com    reads   =a.example.com   *.example.com  *.com  *
 *   *.example.com    reads   <.example.com    *.com  *
 *   every host       reads   <
 * ```
 */

import { exactList } from '../../../ground/base/exact-list.ts'
import { type Age, compareAge, compareText, type ObjectRef } from '../../../ground/model/names.ts'
import type { ParentRef } from '../../api/gateway-api/common.ts'
import { requestRouteKinds } from '../../api/kinds.ts'
import type { Contribution, Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { attachToParent, hostnamesByListener, type ParentAttachment } from './route-attachment.ts'

const relation = 'claims'

/** The claim of a route on a listener; serialised as JSON to be a member of a relation. */
interface RouteClaim extends Age, ObjectRef {
  /** Hostnames that the route and the listener share; an empty one is any host. */
  readonly hostnames: readonly string[]
}

const isWildcard = (hostname: string): boolean => hostname === '' || hostname.startsWith('*.')

/** For `a.example.com` returns `.example.com`, `.com` and the empty string. */
function suffixes(hostname: string): string[] {
  const found: string[] = []
  for (let dot = hostname.indexOf('.'); dot >= 0; dot = hostname.indexOf('.', dot + 1)) {
    found.push(hostname.slice(dot))
  }
  return [...found, '']
}

/** For a wildcard, the first suffix is the part after the asterisk. */
function claimedPlaces(hostname: string): string[] {
  const under = suffixes(hostname)
  const own = isWildcard(hostname) ? `*${under[0]}` : `=${hostname}`
  return [own, ...under.map((suffix) => `<${suffix}`)]
}

function readPlaces(hostname: string): string[] {
  const [first = '', ...rest] = suffixes(hostname)
  if (!isWildcard(hostname)) return [`=${hostname}`, ...[first, ...rest].map((one) => `*${one}`)]
  return [`<${first}`, ...rest.map((suffix) => `*${suffix}`)]
}

const placeKey = (...parts: readonly [kind: string, listener: string, place: string]) =>
  parts.join(' ')

function claimOf(route: ObjectRef, age: Age, hostnames: readonly string[]): RouteClaim {
  const { kind, namespace, name } = route
  return { kind, namespace, name, ...age, hostnames: [...hostnames].sort(compareText) }
}

/** Derives to what a route attaches, which is the value of the stage, and what it claims there. */
function deriveClaims(
  read: Reader,
  route: ObjectRef,
  age: Age,
  hostnames: readonly string[],
  parentRefs: readonly ParentRef[],
): Derived {
  const parents = parentRefs.flatMap(
    (parent) => attachToParent(route, hostnames, parent, read) ?? [],
  )
  const contributions: Contribution[] = []
  for (const [listener, hostnames] of hostnamesByListener(parents)) {
    const member = JSON.stringify(claimOf(route, age, [...hostnames]))
    const places = new Set([...hostnames].flatMap(claimedPlaces))
    for (const place of places) {
      contributions.push([relation, placeKey(route.kind, listener, place), member])
    }
  }
  return { value: exactList(parents), contributions: exactList(contributions) }
}

/** Also works for GRPCRoutes, whose parents and hostnames are in the same fields as those of HTTPRoutes. */
export const routeClaimsStage: Stage = {
  name: 'route-claims',
  kinds: requestRouteKinds,
  inputs({ ref, age, object }) {
    if (object === undefined) return []
    const { parentRefs, hostnames } = specOf<'HTTPRoute'>(object)
    return [ref, age, hostnames, parentRefs]
  },
  derive({ ref, age, object }: ObjectState, read: Reader): Derived {
    if (object === undefined) return {}
    const { parentRefs = [], hostnames = [] } = specOf<'HTTPRoute'>(object)
    return deriveClaims(read, ref, age, hostnames, parentRefs)
  },
}

/** Returns a negative number if `a` wins over `b`. */
function compareClaims(a: RouteClaim, b: RouteClaim): number {
  return compareAge(a, b) || compareText(a.kind, b.kind)
}

/** The oldest route of another kind that is served in place of this one; undefined if there is none. */
function winnerOver(claim: RouteClaim, listener: string, read: Reader): RouteClaim | undefined {
  const members = new Set<string>()
  for (const place of new Set(claim.hostnames.flatMap(readPlaces))) {
    for (const kind of requestRouteKinds) {
      if (kind === claim.kind) continue
      for (const member of read.members(relation, placeKey(kind, listener, place))) {
        members.add(member)
      }
    }
  }
  if (members.size === 0) return undefined
  const older = [...members]
    .map((member) => JSON.parse(member) as RouteClaim)
    .filter((other) => compareClaims(other, claim) < 0)
    .sort(compareClaims)
  return older.find((other) => winnerOver(other, listener, read) === undefined)
}

/**
 * The parents of a route, without the listeners on which a route of another kind is served instead. An invalid
 * route has none.
 */
export function readParents({ ref, age }: ObjectState, read: Reader): readonly ParentAttachment[] {
  const parents = read.value<readonly ParentAttachment[]>(routeClaimsStage.name, ref) ?? []
  return read.part(settleClaims, ref, age, parents)
}

function settleClaims(
  read: Reader,
  route: ObjectRef,
  age: Age,
  parents: readonly ParentAttachment[],
): readonly ParentAttachment[] {
  const lost = new Map<string, string>()
  for (const [listener, hostnames] of hostnamesByListener(parents)) {
    const winner = winnerOver(claimOf(route, age, [...hostnames]), listener, read)
    if (winner !== undefined) lost.set(listener, conflictText(winner))
  }
  if (lost.size === 0) return parents
  return parents.map((parent) => {
    const attached = parent.attached.filter(({ listener }) => !lost.has(listener.key))
    if (attached.length === parent.attached.length) return parent
    const messages = parent.attached.flatMap(({ listener: { key, section } }) => {
      const text = lost.get(key)
      return text === undefined ? [] : [`listener ${section}: ${text}`]
    })
    const message = messages.join('; ')
    if (attached.length > 0) return { ...parent, attached, note: `not served on ${message}` }
    return { ...parent, attached, failure: { reason: 'HostnameConflict', message } }
  })
}

function conflictText({ kind, namespace, name, hostnames }: RouteClaim): string {
  const hosts = hostnames.map((hostname) => (hostname === '' ? 'every hostname' : hostname))
  const users = requestRouteKinds.map((one) => `for ${one}s`).join(' or ')
  const who = `${kind} ${namespace}/${name} comes first (by age, then by name)`
  return `${who} and has ${hosts.join(', ')}; a hostname is ${users}`
}
