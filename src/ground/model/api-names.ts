/** Names that appear in manifests and statuses of this gateway. */
export const gatewayGroup = 'gateway.networking.k8s.io'
export const inferenceGroup = 'inference.networking.k8s.io'
/** The API group of kube-agentic-networking. */
export const agenticGroup = 'agentic.networking.x-k8s.io'
/** The API group of our own kinds. */
export const ownGroup = 'sluice.dev'
export const controllerName = 'sluice.dev/gateway-controller'
/** The name of the GatewayClass that exists even if no manifest defines it. */
export const defaultClassName = 'agentgateway'
