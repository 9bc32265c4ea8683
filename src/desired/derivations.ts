/**
 * All derivations, in the order in which they depend on each other: a stage reads values and
 * relations of the stages above it only.
 */
import { keySetsPendingFact } from '../model/key-sets.ts'
import { backendStage } from './derive/backend.ts'
import { backendTlsPolicyStage, backendTlsTargets } from './derive/backend-tls-policy.ts'
import { gatewayStage } from './derive/gateway.ts'
import { gatewayServices } from './derive/gateway-addresses.ts'
import { gatewayClassStage } from './derive/gateway-class.ts'
import { gatewayDeploymentStage } from './derive/gateway-deployment.ts'
import { gatewayStatusStage, listenerSetStatusStage } from './derive/gateway-status.ts'
import { grpcRouteStage } from './derive/grpc-route.ts'
import { httpRouteStage } from './derive/http-route.ts'
import type { CheckRegex } from './derive/http-rule.ts'
import { inferencePoolStage, inferencePools, podStage } from './derive/inference-pool.ts'
import { inferencePoolStatusStage } from './derive/inference-pool-status.ts'
import { policyStage } from './derive/policy.ts'
import { policyStatusStage } from './derive/policy-status.ts'
import { routeClaimsStage } from './derive/route-claims.ts'
import { serviceStage, workloadStage } from './derive/service.ts'
import { streamRouteStage } from './derive/stream-route.ts'
import { Graph, type IndexDefinition, type Stage } from './graph.ts'
import { gatewayOfSet, specOf } from './specs.ts'

export interface DerivationOptions {
  readonly checkRegex: CheckRegex
  /** Nobody fetches key sets here: a policy that waits for one is not refused for it. */
  readonly keySetsArePending?: boolean
}

function stages({ checkRegex }: DerivationOptions): readonly Stage[] {
  return [
    gatewayClassStage,
    // Which listeners there are; reads ListenerSets, so that conflicts are settled in one place.
    gatewayStage,
    // Reads the ports of the listeners.
    gatewayDeploymentStage,
    serviceStage,
    workloadStage,
    backendStage,
    // Contributes which hostnames routes want of a listener.
    routeClaimsStage,
    // Before the routes, which are told what is wrong with a pool that they lead to.
    inferencePoolStage,
    podStage,
    // Attaches to listeners; contributes `attached` (route counts) and `reach` (backend -> Gateway).
    httpRouteStage(checkRegex),
    grpcRouteStage(checkRegex),
    streamRouteStage,
    // Targets anything above.
    policyStage,
    // Compares what policies claim at the same place.
    policyStatusStage,
    backendTlsPolicyStage,
    // After the routes: tells pools who leads to them.
    inferencePoolStatusStage,
    // Last: counts attached routes.
    gatewayStatusStage,
    listenerSetStatusStage,
  ]
}

/** Kinds that a policy may select by label, as targets or for what they hold. */
const selectable = [
  'Gateway',
  'ListenerSet',
  'HTTPRoute',
  'GRPCRoute',
  'TLSRoute',
  'TCPRoute',
  'Service',
  'GatewayBackend',
  'InferencePool',
  'Secret',
]

const indexes: readonly IndexDefinition[] = [
  {
    name: 'listener-sets',
    kinds: ['ListenerSet'],
    keys: ({ object, ref }) => {
      if (object === undefined) return []
      const gateway = gatewayOfSet(ref.namespace, specOf<'ListenerSet'>(object))
      return gateway === undefined ? [] : [`${gateway.namespace}/${gateway.name}`]
    },
  },
  backendTlsTargets,
  gatewayServices,
  inferencePools,
  // One namespace, or all: MCP backends select Services, those without labels as well.
  { name: 'services', kinds: ['Service'], keys: ({ ref }) => [ref.namespace, ''] },
  { name: 'grants', kinds: ['ReferenceGrant'], keys: ({ ref }) => [ref.namespace] },
  {
    name: 'labelled',
    kinds: selectable,
    keys: ({ object, ref }) =>
      Object.keys(object?.metadata.labels ?? {}).length === 0
        ? []
        : [`${ref.kind}/${ref.namespace}`],
  },
]

/** A fresh, empty graph. */
export function createGraph(options: DerivationOptions): Graph {
  const graph = new Graph(stages(options), indexes)
  graph.setFact(keySetsPendingFact, options.keySetsArePending)
  return graph
}
