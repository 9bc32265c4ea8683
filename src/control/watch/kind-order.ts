/**
 * Order of kinds in a batch: referenced kinds come first, so that a new route is never observed before
 * its Service, and ListenerSets before their Gateways, so that the listeners of a Gateway are derived once. Routes
 * have the same place, since the first observation decides which of two is older if they have no creation time.
 */
const order = [
  'Namespace',
  'GatewayParameters',
  'GatewayClass',
  'ConfigMap',
  'Secret',
  'Service',
  'EndpointSlice',
  'ReferenceGrant',
  'GatewayBackend',
  'AgentgatewayModel',
  'InferencePool',
  'Pod',
  'BackendTLSPolicy',
  'GatewayPolicy',
  'GatewayBudget',
  'XAccessPolicy',
  'ListenerSet',
  'Gateway',
]

/** Position of a kind in a batch. */
export function rankOf(kind: string): number {
  const at = order.indexOf(kind)
  return at < 0 ? order.length : at
}
