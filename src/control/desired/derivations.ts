/**
 * All derivations, in the order of their dependencies: a stage reads only values and relations of the
 * stages before it.
 */
import { keySetsPendingInput } from '../../ground/model/key-sets.ts'
import { accessPolicyStage, externalAuthTargets } from './derive/access-policy.ts'
import { backendStage } from './derive/backend.ts'
import { backendTlsPolicyStage, backendTlsTargets } from './derive/backend-tls-policy.ts'
import { budgetStage } from './derive/budget.ts'
import { delegationStage, routesByNamespace } from './derive/delegation.ts'
import { gatewayStage, listenerOwnerStage } from './derive/gateway.ts'
import { gatewayServices } from './derive/gateway-addresses.ts'
import { gatewayClassStage } from './derive/gateway-class.ts'
import { gatewayDeploymentStage } from './derive/gateway-deployment.ts'
import { gatewayStatusStage, listenerSetStatusStage } from './derive/gateway-status.ts'
import { viewGrpcRule } from './derive/grpc-route.ts'
import { type CheckRegex, viewRule } from './derive/http-rule.ts'
import { inferencePoolStage, inferencePools, podStage } from './derive/inference-pool.ts'
import { inferencePoolStatusStage } from './derive/inference-pool-status.ts'
import { modelStage } from './derive/model.ts'
import { modelSetStage } from './derive/model-sets.ts'
import { modelsByParent } from './derive/model-view.ts'
import { policyStage } from './derive/policy.ts'
import { budgetStatusStage, policyStatusStage } from './derive/policy-status.ts'
import { targetKindNames } from './derive/policy-targets.ts'
import { requestRouteStage } from './derive/request-route.ts'
import { routeClaimsStage } from './derive/route-claims.ts'
import { serviceStage, workloadStage } from './derive/service.ts'
import { stdioParameters } from './derive/stdio-parameters.ts'
import { streamRouteStage } from './derive/stream-route.ts'
import { Graph, type Stage } from './graph.ts'
import type { IndexDefinition } from './object-indexes.ts'
import { gatewayOfSet, specOf } from './specs.ts'

export interface DerivationOptions {
  readonly checkRegex: CheckRegex
  /** Whether nothing fetches key sets. A policy is then not refused because its key set is missing. */
  readonly keySetsArePending?: boolean
}

/** @internal */
export function stages({ checkRegex }: DerivationOptions): readonly Stage[] {
  return [
    // First, since objects of many kinds refer to Services.
    serviceStage,
    gatewayClassStage,
    // Derives all listeners of a Gateway. Reads ListenerSets, so that one stage resolves all conflicts.
    gatewayStage,
    listenerOwnerStage,
    // Reads the ports of the listeners.
    gatewayDeploymentStage,
    workloadStage,
    // Before backends, models and routes, which report the problems of the pools that they refer to.
    inferencePoolStage,
    podStage,
    backendStage,
    // Attach to listeners or to rules of routes, which then have them as their backend.
    modelStage,
    modelSetStage,
    // Contributes the hostnames that routes claim on listeners.
    routeClaimsStage,
    // Contributes the rules that delegate to an HTTPRoute.
    delegationStage,
    // Attach to listeners; contribute `attached` (route counts) and `reach` (backend -> Gateway).
    requestRouteStage('HTTPRoute', viewRule, checkRegex),
    requestRouteStage('GRPCRoute', viewGrpcRule, checkRegex),
    streamRouteStage,
    // Can target objects of all stages above.
    policyStage,
    // Compares the claims of policies on the same target.
    policyStatusStage,
    budgetStage,
    budgetStatusStage,
    accessPolicyStage,
    backendTlsPolicyStage,
    // After the routes, which contribute the Gateways that refer to a pool.
    inferencePoolStatusStage,
    // Last, because it counts the attached routes.
    gatewayStatusStage,
    listenerSetStatusStage,
  ]
}

/** @internal */
export const indexes: readonly IndexDefinition[] = [
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
  externalAuthTargets,
  gatewayServices,
  inferencePools,
  modelsByParent,
  routesByNamespace,
  // Keyed by namespace, and '' for all: MCP backends select Services, including those without labels.
  { name: 'services', kinds: ['Service'], keys: ({ ref }) => [ref.namespace, ''] },
  stdioParameters,
  { name: 'grants', kinds: ['ReferenceGrant'], keys: ({ ref }) => [ref.namespace] },
  {
    name: 'labelled',
    // Policies select their targets by label, and also Secrets and ConfigMaps with API keys.
    kinds: [...targetKindNames, 'Secret', 'ConfigMap'],
    keys: ({ object, ref }) =>
      Object.keys(object?.metadata.labels ?? {}).length === 0
        ? []
        : [`${ref.kind}/${ref.namespace}`],
  },
]

/** Creates an empty graph. */
export function createGraph(options: DerivationOptions): Graph {
  const graph = new Graph(stages(options), indexes)
  graph.setInput(keySetsPendingInput, options.keySetsArePending)
  return graph
}
