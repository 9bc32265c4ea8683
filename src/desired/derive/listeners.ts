/**
 * The listeners of one Gateway: its own and those of attached ListenerSets, with everything that
 * their conditions say. Routes and statuses are derived from this view.
 */
import type { AllowedNamespaces } from '../../api/gateway-api/gateway.ts'
import type { ListenerSpec } from '../../api/gateway-api/listeners.ts'
import { gatewayGroup } from '../../api/names.ts'
import type { Age, ObjectName, ObjectRef } from '../../model/names.ts'
import { compareAge } from '../../model/names.ts'
import type { ListenerResource, ListenerTls, Protocol } from '../../model/resources.ts'
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
  /** Route kinds that may attach. */
  readonly kinds: readonly string[]
  readonly accepted: Failure | null
  readonly resolvedRefs: Failure | null
  readonly conflict: Failure | null
  /** TLS is to end here, and no certificate is left to do it with. */
  readonly lacksCertificate: boolean
}

/** A listener before conflicts are known, with what decides who wins. */
export interface Candidate {
  readonly view: ListenerView
  readonly ownerAge: Age
  /** Not in the view: routes that read it need not wake when a certificate is renewed. */
  readonly tls: ListenerTls | undefined
}

export function isUsable(listener: ListenerView): boolean {
  return listener.accepted === null && listener.conflict === null
}

/** Route kinds per protocol that this version serves. */
const kindsByProtocol: Readonly<Record<string, readonly string[]>> = {
  HTTP: ['HTTPRoute', 'GRPCRoute'],
  HTTPS: ['HTTPRoute', 'GRPCRoute'],
  TLS: ['TLSRoute'],
  TCP: ['TCPRoute'],
  UDP: ['UDPRoute'],
}

/** Where TLS ends here, what comes out is a TCP connection (Gateway API, TLSModeType). */
function kindsOf({ protocol, tls }: ListenerSpec): readonly string[] {
  const kinds = Object.hasOwn(kindsByProtocol, protocol) ? kindsByProtocol[protocol] : undefined
  const ends = protocol === 'TLS' && tls?.mode !== 'Passthrough'
  return ends ? ['TLSRoute', 'TCPRoute'] : (kinds ?? [])
}

function protocolFailure(protocol: string): Failure | null {
  if (Object.hasOwn(kindsByProtocol, protocol)) return null
  const supported = Object.keys(kindsByProtocol).join(', ')
  const message = `protocol ${protocol} is not supported; supported: ${supported}`
  return { reason: 'UnsupportedProtocol', message }
}

/**
 * Ports of the proxy itself, beside the listeners: administration, metrics, readiness.
 */
const reservedPorts = [15_000, 15_020, 15_021]

function portFailure({ port, protocol }: ListenerSpec): Failure | null {
  if (protocol === 'UDP' || !reservedPorts.includes(port)) return null
  const message = `port ${port} is the proxy's own; reserved are ${reservedPorts.join(', ')}`
  return { reason: 'PortUnavailable', message }
}

/** supportedKinds is the intersection of what the protocol allows and what the user asks for. */
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

/** Where a listener stands: in which Gateway, written by whom. */
interface ListenerPlace {
  readonly gateway: ObjectName
  readonly owner: ObjectRef
  readonly ownerAge: Age
}

/** One listener by itself, before it is compared with its neighbours. */
export function listenerCandidate(
  { gateway, owner, ownerAge }: ListenerPlace,
  spec: ListenerSpec,
  { tls, failure: tlsReference, refusal }: ResolvedTls,
): Candidate {
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

/** Listeners that may share a port; UDP ports are another space than TCP ports. */
function portSpace({ protocol, port }: ListenerView): string {
  return `${protocol === 'UDP' ? 'udp' : 'tcp'}:${port}`
}

function protocolGroup(protocol: string): string {
  return protocol === 'HTTPS' || protocol === 'TLS' ? 'tls' : protocol
}

function conflictWith(a: ListenerView, b: ListenerView): Failure | null {
  if (protocolGroup(a.protocol) !== protocolGroup(b.protocol)) {
    const message = `port ${a.port} is also asked for with protocol ${b.protocol} by ${describe(b)}`
    return { reason: 'ProtocolConflict', message }
  }
  const byPortAlone = a.protocol === 'TCP' || a.protocol === 'UDP'
  if (!byPortAlone && a.hostname !== b.hostname) return null
  const message = `port ${a.port} with hostname "${a.hostname}" is also asked for by ${describe(b)}`
  return { reason: 'HostnameConflict', message }
}

function describe({ owner, section }: ListenerView): string {
  return `listener ${section} of ${owner.kind} ${owner.namespace}/${owner.name}`
}

/**
 * Marks conflicts. Among a Gateway's own listeners nobody wins; between the Gateway and
 * ListenerSets the order is Gateway, then the oldest set, and the first keeps working
 * (Gateway API, ListenerSet precedence).
 */
export function markConflicts(candidates: readonly Candidate[]): ListenerView[] {
  const ordered = [...candidates].sort(byPrecedence)
  const kept = new Map<string, ListenerView[]>()
  const conflicts = new Map<string, Failure>()
  for (const { view } of ordered) {
    const space = portSpace(view)
    const neighbours = kept.get(space) ?? []
    kept.set(space, neighbours)
    const rivals = neighbours.filter((other) => conflictWith(view, other) !== null)
    const rival = rivals[0]
    if (rival !== undefined) noteConflict(conflicts, view, rivals)
    const loses = rival !== undefined && view.owner.kind !== 'Gateway'
    if (!loses) neighbours.push(view)
  }
  return candidates.map(({ view }) => ({ ...view, conflict: conflicts.get(view.key) ?? null }))
}

function noteConflict(
  conflicts: Map<string, Failure>,
  view: ListenerView,
  rivals: readonly ListenerView[],
): void {
  for (const rival of rivals) {
    const failure = conflictWith(view, rival)
    if (failure !== null && !conflicts.has(view.key)) conflicts.set(view.key, failure)
    const mutual = view.owner.kind === 'Gateway' && rival.owner.kind === 'Gateway'
    const reverse = conflictWith(rival, view)
    if (mutual && reverse !== null && !conflicts.has(rival.key)) conflicts.set(rival.key, reverse)
  }
}

function byPrecedence(a: Candidate, b: Candidate): number {
  const rank = ({ view }: Candidate) => (view.owner.kind === 'Gateway' ? 0 : 1)
  if (rank(a) !== rank(b)) return rank(a) - rank(b)
  const ofA = { ...a.ownerAge, ...a.view.owner }
  const ofB = { ...b.ownerAge, ...b.view.owner }
  return compareAge(ofA, ofB)
}

/** The wire form of a usable listener. */
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
