/** Short builders of manifests for tests; each gives one YAML document (JSON is YAML). */

type Fields = Readonly<Record<string, unknown>>

export type Manifest = Fields

/** An object of no namespace that is said: `default` in a cluster and in manifests. */
type Named = Fields & {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
}

export function manifest(...objects: readonly Fields[]): string {
  return objects.map((object) => `${JSON.stringify(object, undefined, 2)}\n`).join('---\n')
}

const gatewayApi = 'gateway.networking.k8s.io/v1'
const own = 'sluice.dev/v1alpha1'

/** A Gateway of the default class with one HTTP listener. */
export function gateway(port: number, spec: Fields = {}, name = 'edge'): Fields {
  const listeners = [{ name: 'http', port, protocol: 'HTTP' }]
  return {
    apiVersion: gatewayApi,
    kind: 'Gateway',
    metadata: { name },
    spec: { gatewayClassName: 'agentgateway', listeners, ...spec },
  }
}

/** An HTTPRoute of the Gateway `edge`. */
export function httpRoute(name: string, spec: Fields, metadata: Fields = {}): Fields {
  return {
    apiVersion: gatewayApi,
    kind: 'HTTPRoute',
    metadata: { name, ...metadata },
    spec: { parentRefs: [{ name: 'edge' }], ...spec },
  }
}

/** `NAME.example.com`: the host by which most tests distinguish their routes. */
export const hostOf = (name: string) => `${name}.example.com`

/** An HTTPRoute with one rule for the host `NAME.example.com`. */
export function routeByHost(name: string, backendRef: Fields, rule: Fields = {}): Fields {
  const rules = [{ backendRefs: [backendRef], ...rule }]
  return httpRoute(name, { hostnames: [hostOf(name)], rules })
}

/** An HTTPRoute from the path `/NAME` to the GatewayBackend of that name. */
export function routeByPath(name: string): Fields {
  const matches = [{ path: { type: 'PathPrefix', value: `/${name}` } }]
  return httpRoute(name, { rules: [{ matches, backendRefs: [toBackend(name)] }] })
}

/** A GRPCRoute of the Gateway `edge`. */
export function grpcRoute(name: string, spec: Fields): Fields {
  return {
    apiVersion: gatewayApi,
    kind: 'GRPCRoute',
    metadata: { name },
    spec: { parentRefs: [{ name: 'edge' }], ...spec },
  }
}

/** A static GatewayBackend on the loopback address. */
export function staticBackend(name: string, port: number, policies?: Fields): Named {
  return {
    apiVersion: own,
    kind: 'GatewayBackend',
    metadata: { name },
    spec: { static: { host: '127.0.0.1', port }, ...(policies && { policies }) },
  }
}

/** A GatewayBackend of language models. */
export function aiBackend(name: string, ai: Fields, policies?: Fields): Fields {
  return {
    apiVersion: own,
    kind: 'GatewayBackend',
    metadata: { name },
    spec: { ai, ...(policies && { policies }) },
  }
}

/** A GatewayBackend of MCP servers. */
export function mcpBackend(name: string, targets: readonly Fields[], more: Fields = {}): Fields {
  return {
    apiVersion: own,
    kind: 'GatewayBackend',
    metadata: { name },
    spec: { mcp: { targets, ...more } },
  }
}

/** A reference to a GatewayBackend, for backendRefs. */
export function toBackend(name: string, more: Fields = {}): Fields {
  return { group: 'sluice.dev', kind: 'GatewayBackend', name, ...more }
}

const inferenceGroup = 'inference.networking.k8s.io'
const groups: Readonly<Record<string, string>> = {
  Service: '',
  GatewayBackend: 'sluice.dev',
  AgentgatewayModel: 'sluice.dev',
  InferencePool: inferenceGroup,
}

/** A reference to an InferencePool, for backendRefs. */
export function toPool(name: string, more: Fields = {}): Fields {
  return { group: inferenceGroup, kind: 'InferencePool', name, ...more }
}

/** An InferencePool of Pods with the label `app`, with a picker behind a Service of the name. */
export function inferencePool(
  name: string,
  app: string,
  ports: readonly number[],
  picker: Fields | undefined,
  more: Fields = {},
): Fields {
  return {
    apiVersion: `${inferenceGroup}/v1`,
    kind: 'InferencePool',
    metadata: { name },
    spec: {
      selector: { matchLabels: { app } },
      targetPorts: ports.map((number) => ({ number })),
      ...(picker && { endpointPickerRef: { port: { number: 80 }, ...picker } }),
      ...more,
    },
  }
}

/** A Pod with the label `app` at an address, ready by default. */
export function pod(name: string, app: string, podIP: string, isReady = true): Fields {
  const ready = { type: 'Ready', status: isReady ? 'True' : 'False' }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app } },
    spec: { containers: [{ name: 'server', image: 'example.com/server' }] },
    status: { phase: 'Running', podIP, conditions: [ready] },
  }
}

/** A GatewayPolicy on one target, given as `Kind/name` or `Kind/name#section`. */
export function policy(name: string, target: string, spec: Fields, metadata: Fields = {}): Fields {
  const [reference = '', sectionName] = target.split('#')
  const [kind = '', targetName = ''] = reference.split('/')
  const group = groups[kind] ?? gatewayGroup
  const targetRef = { group, kind, name: targetName, ...(sectionName && { sectionName }) }
  return {
    apiVersion: own,
    kind: 'GatewayPolicy',
    metadata: { name, ...metadata },
    spec: { targetRefs: [targetRef], ...spec },
  }
}

/** A GatewayBudget on one target, given as `Kind/name`. */
export const budget = (name: string, target: string, spec: Fields): Fields => ({
  ...policy(name, target, spec),
  kind: 'GatewayBudget',
})

/** A Secret with entries as text. */
export function secret(
  name: string,
  stringData: Readonly<Record<string, string>>,
  labels?: Readonly<Record<string, string>>,
): Fields {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, ...(labels && { labels }) },
    stringData,
  }
}

const gatewayGroup = 'gateway.networking.k8s.io'

/** A Service whose endpoints are the given loopback ports. */
export function service(name: string, endpoints: readonly number[], more: Fields = {}): Fields[] {
  const slices = endpoints.map((port, index) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-${index}`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port }],
    endpoints: [{ addresses: ['127.0.0.1'] }],
  }))
  const ports = [{ name: 'http', port: 80, ...more }]
  return [{ apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports } }, ...slices]
}

/** A TLSRoute, TCPRoute or UDPRoute of one listener of the Gateway `edge`. */
export function streamRoute(
  kind: 'TLSRoute' | 'TCPRoute' | 'UDPRoute',
  name: string,
  sectionName: string,
  backendRefs: readonly Fields[],
  more: Fields = {},
): Fields {
  return {
    apiVersion: gatewayApi,
    kind,
    metadata: { name },
    spec: { parentRefs: [{ name: 'edge', sectionName }], rules: [{ backendRefs }], ...more },
  }
}

/** A Secret of type `kubernetes.io/tls`. */
export function tlsSecret(name: string, pair: { certificate: string; key: string }): Fields {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': base64(pair.certificate), 'tls.key': base64(pair.key) },
  }
}

export function configMap(
  name: string,
  data: Readonly<Record<string, string>>,
  labels?: Readonly<Record<string, string>>,
): Fields {
  const metadata = { name, ...(labels && { labels }) }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }
}

/** An AgentgatewayModel of the Gateway `edge`, unless it names other parents. */
export function servedModel(name: string, spec: Fields, namespace?: string): Fields {
  return {
    apiVersion: own,
    kind: 'AgentgatewayModel',
    metadata: { name, ...(namespace && { namespace }) },
    spec: { parentRefs: [{ name: 'edge' }], ...spec },
  }
}
