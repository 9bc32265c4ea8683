/** Decides what is deployed for a Gateway: whether anything is, its ports, and the merged parameters. */

import { gatewayGroup } from '../../../ground/model/api-names.ts'
import type { GatewaySpec } from '../../api/gateway-api/gateway.ts'
import { type Failure, notOwn } from '../conditions.ts'
import { hiddenSettings } from '../deployment/own-settings.ts'
import { joinParameters, overlaysOf, type ParametersLevel } from '../deployment/parameters.ts'
import {
  anyEnvironment,
  type Deployment,
  type ProxyPlan,
  type ProxyPort,
} from '../deployment/plan.ts'
import { renderProxy, unusedOverlays, workloadKind } from '../deployment/render.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { type GatewayView, gatewayStage } from './gateway.ts'
import { isUsable } from './listeners.ts'
import { resolveParameters } from './parameters.ts'

/** What the status of a Gateway reports about its deployment. */
export interface DeploymentView {
  /** Why the deployment cannot be updated. What is deployed keeps running. */
  readonly failure: Failure | null
  readonly notes: readonly string[]
}

const meshNote =
  'mesh: the proxy gets identity and trust domain, but HBONE is not supported yet: it connects to pods without it'
const selfManagedNote =
  'spec.addresses has a host name: no proxy is deployed, those that connect are served'

const invalid = (failure: Omit<Failure, 'reason'>): Derived => ({
  value: {
    failure: { reason: 'InvalidParameters', ...failure },
    notes: [],
  } satisfies DeploymentView,
  deployment: { state: 'held' },
})

/** If a hostname is requested as address, the user deploys the proxies. */
function isSelfManaged({ addresses = [] }: GatewaySpec): boolean {
  return addresses.some(({ type, value = '' }) => type === 'Hostname' && value !== '')
}

/** Removes keys with the prefix of Gateway API, which only the controller may set. */
function withoutReserved(
  given: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(given ?? {}).filter(([key]) => !key.startsWith(`${gatewayGroup}/`)),
  )
}

function portsOf({ owners }: GatewayView): ProxyPort[] {
  const listeners = Object.values(owners).flatMap((owned) => owned.listeners)
  const ports = new Map<string, ProxyPort>()
  for (const { port, protocol } of listeners.filter(isUsable)) {
    const transport = protocol === 'UDP' ? 'UDP' : 'TCP'
    ports.set(`${port}/${transport}`, { port, protocol: transport })
  }
  return [...ports.values()].sort(
    (a, b) => a.port - b.port || Number(a.protocol === 'UDP') - Number(b.protocol === 'UDP'),
  )
}

function planOf(
  self: ObjectState,
  spec: GatewaySpec,
  ports: readonly ProxyPort[],
  levels: readonly ParametersLevel[],
): ProxyPlan {
  const { infrastructure, addresses = [], gatewayClassName: className } = spec
  const address = addresses.find(({ type = 'IPAddress', value = '' }) => {
    return type === 'IPAddress' && value !== ''
  })?.value
  return {
    namespace: self.ref.namespace,
    name: self.ref.name,
    uid: self.uid,
    className,
    ports,
    ...(address !== undefined && { address }),
    labels: withoutReserved(infrastructure?.labels),
    annotations: withoutReserved(infrastructure?.annotations),
    parameters: joinParameters(levels),
    overlays: overlaysOf(levels),
  }
}

/** A class has no ConfigMaps in the namespaces of its Gateways. */
function withoutCatalog(level: ParametersLevel | undefined): {
  readonly level: ParametersLevel | undefined
  readonly note?: string
} {
  if (level?.spec.modelCatalog === undefined) return { level }
  const { modelCatalog: _catalog, ...spec } = level.spec
  const note = `${level.name}: spec.modelCatalog is ignored: only parameters of a Gateway can set it`
  return { level: { ...level, spec }, note }
}

function deploymentOf(self: ObjectState, spec: GatewaySpec, view: GatewayView, read: Reader) {
  const classState = read.object('GatewayClass', '', spec.gatewayClassName)
  const ofClass = resolveParameters(
    classState?.object && specOf<'GatewayClass'>(classState.object).parametersRef,
    undefined,
    read,
  )
  if (ofClass.problem !== undefined) {
    const message = `GatewayClass ${spec.gatewayClassName}: ${ofClass.problem.message}`
    return invalid({ message, ...notOwn })
  }
  const ofGateway = resolveParameters(spec.infrastructure?.parametersRef, self.ref.namespace, read)
  if (ofGateway.problem !== undefined) return invalid(ofGateway.problem)
  const { level: classLevel, note } = withoutCatalog(ofClass.level)
  const levels = [classLevel, ofGateway.level].filter((level) => level !== undefined)
  const ports = portsOf(view)
  const plan = planOf(self, spec, ports, levels)
  const rendered = renderProxy(plan, anyEnvironment)
  if (!rendered.ok) return invalid({ message: rendered.problems.join('; ') })
  const isManaged = !isSelfManaged(spec)
  const notes = [
    ...(isManaged ? [] : [selfManagedNote]),
    ...(note === undefined ? [] : [note]),
    ...(plan.parameters.mesh === undefined ? [] : [meshNote]),
    ...unusedOverlays(plan).map(
      ({ from }) => `${from} has no effect: the proxies run as a ${workloadKind(plan)}`,
    ),
    ...hiddenSettings(plan.parameters).map(
      (name) => `rawConfig.config.${name} is ignored: the controller sets it for each proxy`,
    ),
  ]
  const value: DeploymentView = { failure: null, notes }
  return { value, deployment: stateOf(plan, view, isManaged) }
}

function stateOf(plan: ProxyPlan, { failure }: GatewayView, isManaged: boolean): Deployment {
  if (!isManaged) return { state: 'none', uid: plan.uid }
  // Without ports no Service could be rendered, and deleting the Service would lose its address.
  return failure !== null || plan.ports.length === 0 ? { state: 'held' } : { state: 'wanted', plan }
}

export const gatewayDeploymentStage: Stage = {
  name: 'gateway-deployment',
  kinds: ['Gateway'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return {}
    const spec = specOf<'Gateway'>(self.object)
    const view = read.value<GatewayView>(gatewayStage.name, self.ref)
    if (view !== undefined) return deploymentOf(self, spec, view, read)
    // A deleted class may come back, so nothing changes; a class of another controller takes over.
    const isForeign = read.object('GatewayClass', '', spec.gatewayClassName)?.object !== undefined
    return isForeign ? { deployment: { state: 'none', uid: self.uid } } : {}
  },
}
