/**
 * Settings of connections that apply before a request says which listener it is for. If several Gateways share a
 * port, the settings of the oldest policy apply, and the policies with other settings are reported.
 */
import type { ClientSettings } from '../../../ground/exchange/connection.ts'
import type { ConnectionEnds } from '../../../ground/exchange/peer.ts'
import type { DesiredDelta, PolicyResource } from '../../../ground/model/resources.ts'
import { byAge } from '../../policies/merge.ts'
import type { ListenerPlacement } from './placement.ts'
import { originOf } from './policies.ts'

/** A policy that has no effect on the connections of a port, because an older one has other settings. */
export interface PortConflict {
  readonly port: number
  readonly policy: PolicyResource
  readonly message: string
}

/** Returns whether a change may change the settings of ports. */
export const mayChangePorts = ({ removed, upserted }: DesiredDelta): boolean =>
  removed.length > 0 ||
  upserted.some(
    ({ resource }) =>
      resource.type === 'listener' ||
      (resource.type === 'policy' && resource.section === 'frontend'),
  )

/** The settings of frontend policies of which a port can have only one value. */
const partsOfPort: Readonly<
  Record<string, (client: ClientSettings, policy: PolicyResource) => unknown>
> = {
  'frontend.tcp': (_, { config }) => config,
  'frontend.http': (_, { config }) => config,
  'frontend.proxyProtocol': (_, { config }) => config,
  'frontend.tls': ({ tls }) => tls?.handshakeTimeoutMs,
}

interface PortSetting {
  readonly name: string
  readonly client: ClientSettings
  readonly policy: PolicyResource
}

/** Returns the first listener of each Gateway. All its listeners on a port have the same frontend policies. */
function perGateway(listeners: Iterable<ListenerPlacement>): ListenerPlacement[] {
  const first = new Map<string, ListenerPlacement>()
  for (const listener of listeners) {
    const { gateway } = listener.place
    if (!first.has(gateway)) first.set(gateway, listener)
  }
  return [...first.values()]
}

/** Returns the settings of the frontend policies of a port, the oldest first. */
function settingsOf(listeners: readonly ListenerPlacement[]): PortSetting[] {
  return listeners
    .flatMap((listener) => listener.frontend().steps)
    .flatMap((step) => {
      const { name = '', policies = [] } = originOf(step) ?? {}
      const [policy] = policies
      return step.client === undefined || policy === undefined
        ? []
        : [{ name, client: step.client, policy }]
    })
    .sort((a, b) => byAge(a.policy, b.policy))
}

/**
 * Returns the settings of a port. Address rules refuse a connection only if those of all Gateways refuse it, because
 * the rules of the listener are applied again to each request.
 */
export function portSettings(all: Iterable<ListenerPlacement>): ClientSettings {
  const listeners = perGateway(all)
  const settings = settingsOf(listeners)
  // The oldest comes last, so that it overrides the others.
  const { refusal: _, ...common } = Object.assign(
    {},
    ...settings.toReversed().map(({ client }) => client),
  ) as ClientSettings
  const refusals = listeners.flatMap((listener) => listener.frontend().client.refusal ?? [])
  return {
    ...common,
    ...(refusals.length > 0 &&
      refusals.length === listeners.length && {
        refusal: (ends: ConnectionEnds) => refusalOfAll(refusals, ends),
      }),
  }
}

/** Returns the policies of a port whose settings differ from those of an older policy of another Gateway. */
export function portConflicts(port: number, all: Iterable<ListenerPlacement>): PortConflict[] {
  const listeners = perGateway(all)
  if (listeners.length < 2) return []
  const oldest = new Map<string, PortSetting>()
  const conflicts: PortConflict[] = []
  for (const setting of settingsOf(listeners)) {
    const { name, client, policy } = setting
    const part = partsOfPort[name]
    const first = oldest.get(name)
    if (first === undefined) oldest.set(name, setting)
    else if (part !== undefined && part(client, policy) !== part(first.client, first.policy)) {
      conflicts.push({ port, policy, message: conflictText(port, name, first.policy) })
    }
  }
  return conflicts
}

const conflictText = (port: number, name: string, { policy, target }: PolicyResource): string =>
  `no effect on port ${port}: Gateway ${target.namespace}/${target.name} shares it, and its older policy ${policy.namespace}/${policy.name} sets ${name}`

function refusalOfAll(
  refusals: readonly NonNullable<ClientSettings['refusal']>[],
  ends: ConnectionEnds,
): string | undefined {
  let last: string | undefined
  for (const refusal of refusals) {
    last = refusal(ends)
    if (last === undefined) return undefined
  }
  return last
}

/** Returns whether a policy about PROXY headers of the listener's Gateway is one of `conflicts`. */
const isOverruled = (conflicts: readonly PortConflict[], { resource }: ListenerPlacement) =>
  conflicts.some(
    ({ port, policy: { field, target } }) =>
      port === resource.port &&
      field === 'proxyProtocol' &&
      target.namespace === resource.gateway.namespace &&
      target.name === resource.gateway.name,
  )

/**
 * Returns why a listener refuses a connection that its port has accepted; undefined if it does not. Only the request
 * says which listener it is for.
 */
export function connectionRefusal(
  conflicts: readonly PortConflict[],
  listener: ListenerPlacement,
  ends: ConnectionEnds,
): string | undefined {
  const { proxyProtocol, refusal } = listener.frontend().client
  if (proxyProtocol !== undefined && isOverruled(conflicts, listener)) {
    const { address, proxyHeader } = ends.rawSource
    const maySend = proxyProtocol.isSender?.(address) !== false
    if (proxyHeader === undefined && maySend && !proxyProtocol.isOptional) {
      return 'the connection has no PROXY header'
    }
    if (proxyHeader !== undefined && !maySend) return 'its sender may send no PROXY header'
  }
  return refusal?.(ends)
}
