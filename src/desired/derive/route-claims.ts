/**
 * Hostnames of one listener belong to HTTPRoutes or to GRPCRoutes, not to both (Gateway API,
 * GRPCRouteSpec.hostnames): of two routes of different kinds whose hostnames meet, the older is
 * served. A route that is itself out of the way because of a third one claims nothing.
 *
 * Each route claims its hostnames at places, so that a reader sees just those that meet its own:
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
import { type Age, compareAge, compareText, type ObjectRef } from '../../model/names.ts'
import type { Contribution, Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { attachToParent, type ParentAttachment } from './route-attachment.ts'

const relation = 'claims'

/** What a route wants of a listener; written as JSON, so that it can be a member of a relation. */
interface Claim extends Age, ObjectRef {
  /** As the listener leaves them; an empty string is every host. */
  readonly hostnames: readonly string[]
}

const otherKind = (kind: string): string => (kind === 'HTTPRoute' ? 'GRPCRoute' : 'HTTPRoute')

const isWildcard = (hostname: string): boolean => hostname === '' || hostname.startsWith('*.')

/** `.example.com`, `.com` and nothing, for `a.example.com`. */
function suffixes(hostname: string): string[] {
  const found: string[] = []
  for (let dot = hostname.indexOf('.'); dot >= 0; dot = hostname.indexOf('.', dot + 1)) {
    found.push(hostname.slice(dot))
  }
  return [...found, '']
}

/** Of a wildcard the first suffix is what follows the asterisk. */
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

const placeKey = (kind: string, listener: string, place: string) => `${kind} ${listener} ${place}`

function claimOf({ ref, age }: ObjectState, hostnames: readonly string[]): Claim {
  const { kind, namespace, name } = ref
  return { kind, namespace, name, ...age, hostnames: [...hostnames].sort(compareText) }
}

/** The routes of requests have their parents in the same fields. */
export function attachToParents(self: ObjectState, read: Reader): ParentAttachment[] {
  if (self.object === undefined) return []
  const { parentRefs = [], hostnames = [] } = specOf<'HTTPRoute'>(self.object)
  return parentRefs.flatMap((parent) => attachToParent(self.ref, hostnames, parent, read) ?? [])
}

/** Hostnames by listener: several parentRefs may lead to one. */
function wantedOf(parents: readonly ParentAttachment[]): ReadonlyMap<string, Set<string>> {
  const wanted = new Map<string, Set<string>>()
  for (const { listener, hostnames } of parents.flatMap(({ attached }) => attached)) {
    const known = wanted.get(listener.key) ?? new Set()
    for (const hostname of hostnames) known.add(hostname)
    wanted.set(listener.key, known)
  }
  return wanted
}

export const routeClaimsStage: Stage = {
  name: 'route-claims',
  kinds: ['HTTPRoute', 'GRPCRoute'],
  derive(self: ObjectState, read: Reader): Derived {
    const contributions: Contribution[] = []
    for (const [listener, hostnames] of wantedOf(attachToParents(self, read))) {
      const member = JSON.stringify(claimOf(self, [...hostnames]))
      const places = new Set([...hostnames].flatMap(claimedPlaces))
      for (const place of places) {
        contributions.push([relation, placeKey(self.ref.kind, listener, place), member])
      }
    }
    return { contributions }
  },
}

/** Negative where `a` is served rather than `b`. */
function compareClaims(a: Claim, b: Claim): number {
  return compareAge(a, b) || compareText(a.kind, b.kind)
}

/** The oldest route of the other kind that is served instead; undefined where there is none. */
function winnerOver(claim: Claim, listener: string, read: Reader): Claim | undefined {
  const kind = otherKind(claim.kind)
  const places = new Set(claim.hostnames.flatMap(readPlaces))
  const members = [...places].flatMap((place) =>
    read.members(relation, placeKey(kind, listener, place)),
  )
  const older = [...new Set(members)]
    .map((member) => JSON.parse(member) as Claim)
    .filter((other) => compareClaims(other, claim) < 0)
    .sort(compareClaims)
  return older.find((other) => winnerOver(other, listener, read) === undefined)
}

/** The parents of a route without the listeners where a route of the other kind is served. */
export function settleClaims(
  self: ObjectState,
  parents: readonly ParentAttachment[],
  read: Reader,
): ParentAttachment[] {
  const lost = new Map<string, string>()
  for (const [listener, hostnames] of wantedOf(parents)) {
    const winner = winnerOver(claimOf(self, [...hostnames]), listener, read)
    if (winner !== undefined) lost.set(listener, conflictText(winner))
  }
  if (lost.size === 0) return [...parents]
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

function conflictText({ kind, namespace, name, hostnames }: Claim): string {
  const hosts = hostnames.map((hostname) => (hostname === '' ? 'every hostname' : hostname))
  const who = `${kind} ${namespace}/${name} comes first (by age, then by name)`
  return `${who} and has ${hosts.join(', ')}; a hostname is for HTTPRoutes or for GRPCRoutes`
}
