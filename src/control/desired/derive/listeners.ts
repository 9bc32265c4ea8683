/**
 * The listeners of one Gateway: its own and those of attached ListenerSets, with all problems that their
 * conditions report. Routes and statuses are derived from these views.
 */

import { gatewayGroup } from '../../../ground/model/api-names.ts'
import type { Age, ObjectName, ObjectRef } from '../../../ground/model/names.ts'
import { compareAge } from '../../../ground/model/names.ts'
import type { ListenerResource, ListenerTls, Protocol } from '../../../ground/model/resources.ts'
import type { AllowedNamespaces } from '../../api/gateway-api/gateway.ts'
import type { ListenerSpec } from '../../api/gateway-api/listeners.ts'
import { routeKinds } from '../../api/kinds.ts'
import type { Failure } from '../conditions.ts'
import { type ResolvedTls, tlsFailure } from './listener-tls.ts'

export interface ListenerView {
  readonly key: string
  readonly gateway: ObjectName
  readonly owner: ObjectRef
  readonly section: string
  readonly port: number
  readonly protocol: string
  readonly hostname: string
  readonly namespaces: AllowedNamespaces
  /** Kinds of routes that may attach. */
  readonly kinds: readonly string[]
  readonly accepted: Failure | null
  readonly resolvedRefs: Failure | null
  readonly conflict: Failure | null
  /** Whether the listener must terminate TLS but has no usable certificate. */
  readonly lacksCertificate: boolean
}

/** A listener before conflicts are detected, with the age that decides them. */
export interface ListenerCandidate {
  readonly view: ListenerView
  readonly ownerAge: Age
  /** Not part of the view, so that routes are not derived again when a certificate is renewed. */
  readonly tls: ListenerTls | undefined
}

export function isUsable(listener: ListenerView): boolean {
  return listener.accepted === null && listener.conflict === null
}

/**
 * Whether the listener is valid for the Accepted condition of its owner. A listener without a certificate makes
 * a ListenerSet invalid (Gateway API conformance suite), but not a Gateway.
 */
export function isValid(listener: ListenerView): boolean {
  return isUsable(listener) && (isOfGateway(listener) || !listener.lacksCertificate)
}

const protocols: ReadonlySet<string> = new Set(routeKinds.flatMap(({ listeners }) => listeners))

/** Kinds of routes that the protocol of the listener supports. */
function kindsOf({ protocol, tls }: ListenerSpec): readonly string[] {
  const endsTls = protocol === 'TLS' && tls?.mode !== 'Passthrough'
  return routeKinds
    .filter(
      ({ listeners, takesDecryptedTls }) =>
        listeners.some((one) => one === protocol) || (endsTls && takesDecryptedTls),
    )
    .map(({ kind }) => kind)
}

function protocolFailure(protocol: string): Failure | null {
  if (protocols.has(protocol)) return null
  const message = `protocol ${protocol} is not supported; supported: ${[...protocols].join(', ')}`
  return { reason: 'UnsupportedProtocol', message }
}

/** Ports that the proxy itself uses: administration, metrics, readiness. */
const reservedPorts = [15_000, 15_020, 15_021]

function portFailure({ port, protocol }: ListenerSpec): Failure | null {
  if (protocol === 'UDP' || !reservedPorts.includes(port)) return null
  const message = `port ${port} is the proxy's own; reserved are ${reservedPorts.join(', ')}`
  return { reason: 'PortUnavailable', message }
}

/** supportedKinds are the kinds that both the protocol and the user allow. */
function allowedKinds(spec: ListenerSpec): { kinds: readonly string[]; failure: Failure | null } {
  const supported = kindsOf(spec)
  const asked = spec.allowedRoutes?.kinds
  if (asked === undefined || asked.length === 0) return { kinds: supported, failure: null }
  const isSupported = ({ group = gatewayGroup, kind }: { group?: string; kind: string }) =>
    group === gatewayGroup && supported.includes(kind)
  const refused = asked
    .filter((item) => !isSupported(item))
    .map(({ group = gatewayGroup, kind }) =>
      group === gatewayGroup ? kind : `${kind} of group "${group}"`,
    )
  const kinds = asked.filter(isSupported).map(({ kind }) => kind)
  if (refused.length === 0) return { kinds, failure: null }
  const message = `route kinds that a listener of protocol ${spec.protocol} does not support: ${refused.join(', ')}`
  return { kinds, failure: { reason: 'InvalidRouteKinds', message } }
}

/** The Gateway of a listener, and the object whose spec contains the listener. */
interface ListenerPlace {
  readonly gateway: ObjectName
  readonly owner: ObjectRef
  readonly ownerAge: Age
}

/** Derives one listener before conflicts with other listeners are detected. */
export function listenerCandidate(
  { gateway, owner, ownerAge }: ListenerPlace,
  spec: ListenerSpec,
  { tls, failure: tlsReference, refusal }: ResolvedTls,
): ListenerCandidate {
  const { kinds, failure } = allowedKinds(spec)
  const view: ListenerView = {
    key: `listener/${owner.kind}/${owner.namespace}/${owner.name}/${spec.name}`,
    gateway,
    owner,
    section: spec.name,
    port: spec.port,
    protocol: spec.protocol,
    hostname: (spec.hostname ?? '').toLowerCase(),
    namespaces: spec.allowedRoutes?.namespaces ?? {},
    kinds,
    accepted: protocolFailure(spec.protocol) ?? portFailure(spec) ?? tlsFailure(spec) ?? refusal,
    resolvedRefs: tlsReference ?? failure,
    conflict: null,
    lacksCertificate: tls?.certificates.length === 0,
  }
  return { view, ownerAge, tls }
}

/** Key of a port. UDP and TCP ports with the same number do not conflict. */
function portSpace({ protocol, port }: ListenerView): string {
  return `${protocol === 'UDP' ? 'udp' : 'tcp'}:${port}`
}

function protocolGroup(protocol: string): string {
  return protocol === 'HTTPS' || protocol === 'TLS' ? 'tls' : protocol
}

/** Without hostnames, the port has one listener. */
const isByPortAlone = ({ protocol }: ListenerView): boolean =>
  protocol === 'TCP' || protocol === 'UDP'

function conflictWith(a: ListenerView, b: ListenerView): Failure | null {
  if (protocolGroup(a.protocol) !== protocolGroup(b.protocol)) {
    const message = `port ${a.port} is also asked for with protocol ${b.protocol} by ${describe(b)}`
    return { reason: 'ProtocolConflict', message }
  }
  if (!isByPortAlone(a) && a.hostname !== b.hostname) return null
  const message = `port ${a.port} with hostname "${a.hostname}" is also asked for by ${describe(b)}`
  return { reason: 'HostnameConflict', message }
}

function describe({ owner, section }: ListenerView): string {
  return `listener ${section} of ${owner.kind} ${owner.namespace}/${owner.name}`
}

const isOfGateway = ({ owner }: ListenerView): boolean => owner.kind === 'Gateway'

/**
 * The listeners that have a port, or would have it without a conflict. Finds the first one that conflicts with
 * another without comparing all of them.
 */
class PortUsers {
  readonly #users: ListenerView[] = []
  /** Positions of the first listener of each protocol group, and of each hostname in it. */
  readonly #groups = new Map<string, number>()
  readonly #hostnames = new Map<string, number>()

  add(view: ListenerView): void {
    const group = protocolGroup(view.protocol)
    const at = this.#users.push(view) - 1
    if (!this.#groups.has(group)) this.#groups.set(group, at)
    const name = `${group} ${view.hostname}`
    if (!this.#hostnames.has(name)) this.#hostnames.set(name, at)
  }

  firstRival(view: ListenerView): ListenerView | undefined {
    const own = protocolGroup(view.protocol)
    let first = this.#hostnames.get(`${own} ${view.hostname}`) ?? Number.POSITIVE_INFINITY
    for (const [group, at] of this.#groups) {
      if (at < first && (group !== own || isByPortAlone(view))) first = at
    }
    return this.#users[first]
  }
}

/**
 * Detects conflicts. Of a Gateway's own listeners, all that conflict are rejected. Between a Gateway and
 * its ListenerSets the first keeps working: the Gateway's, then those of older sets (Gateway API,
 * ListenerSet precedence).
 */
export function markConflicts(candidates: readonly ListenerCandidate[]): ListenerView[] {
  const conflicts = new Map<string, Failure>()
  /** Records a conflict, unless the listener already has one. */
  const recordConflict = (view: ListenerView, rival: ListenerView) => {
    const failure = conflictWith(view, rival)
    if (failure !== null && !conflicts.has(view.key)) conflicts.set(view.key, failure)
  }
  const ports = new Map<string, PortUsers>()
  const usersOf = (view: ListenerView) => {
    const space = portSpace(view)
    const users = ports.get(space) ?? new PortUsers()
    ports.set(space, users)
    return users
  }
  const own = candidates.map(({ view }) => view).filter(isOfGateway)
  for (const [at, view] of own.entries()) {
    for (const rival of own.slice(0, at)) {
      if (portSpace(rival) !== portSpace(view)) continue
      recordConflict(view, rival)
      recordConflict(rival, view)
    }
    usersOf(view).add(view)
  }
  for (const view of ofSets(candidates)) {
    const users = usersOf(view)
    const rival = users.firstRival(view)
    if (rival === undefined) users.add(view)
    else recordConflict(view, rival)
  }
  return candidates.map(({ view }) => ({ ...view, conflict: conflicts.get(view.key) ?? null }))
}

/** The listeners of ListenerSets, those of older sets first. */
function ofSets(candidates: readonly ListenerCandidate[]): ListenerView[] {
  return candidates
    .filter(({ view }) => !isOfGateway(view))
    .map(({ view, ownerAge }) => ({ view, set: { ...ownerAge, ...view.owner } }))
    .sort((a, b) => compareAge(a.set, b.set))
    .map(({ view }) => view)
}

/** A usable listener in the form for proxies. */
export function listenerResource(
  view: ListenerView,
  tls: ListenerTls | undefined,
): ListenerResource {
  const { key, gateway, owner, section, port, protocol, hostname } = view
  return {
    type: 'listener',
    key,
    gateway,
    owner,
    section,
    port,
    protocol: protocol as Protocol,
    hostname,
    ...(tls !== undefined && { tls }),
  }
}
