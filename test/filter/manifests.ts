/** Manifests for tests of the filter: one Gateway, a route, and a backend of models with policies. */
const group = 'sluice.dev'
const named = (name: string) => ({ name, namespace: 'default' })

export interface RouteOptions {
  /** Policies of the backend, such as `promptGuard`. */
  readonly ai?: object
  /** The section `traffic` of a policy for the route. */
  readonly traffic?: object
  readonly matches?: readonly object[]
}

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/messages/count_tokens': 'VendorCTokenCount',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
  '/v1/raw': 'Passthrough',
}

export function manifestsFor({ ai, traffic, matches }: RouteOptions): object[] {
  const target = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'chat' }
  return [
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: named('edge'),
      spec: {
        gatewayClassName: 'agentgateway',
        listeners: [{ name: 'http', port: 8080, protocol: 'HTTP' }],
      },
    },
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: named('chat'),
      spec: {
        parentRefs: [{ name: 'edge' }],
        rules: [
          {
            ...(matches && { matches }),
            backendRefs: [{ group, kind: 'GatewayBackend', name: 'model' }],
          },
        ],
      },
    },
    {
      apiVersion: `${group}/v1alpha1`,
      kind: 'GatewayBackend',
      metadata: named('model'),
      spec: {
        ai: { provider: { vendorA: {}, host: '127.0.0.1', port: 9111 } },
        policies: { ai: { routes, ...ai } },
      },
    },
    ...(traffic === undefined
      ? []
      : [
          {
            apiVersion: `${group}/v1alpha1`,
            kind: 'GatewayPolicy',
            metadata: named('limits'),
            spec: { targetRefs: [target], traffic },
          },
        ]),
  ]
}
