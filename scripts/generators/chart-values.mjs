// The values of charts/sluice: what each may be, and what it does.

import {
  budget,
  common,
  environment,
  flag,
  freeObject,
  monitor,
  name,
  objects,
  persistence,
  port,
  pullPolicy,
  quantity,
  strategy,
  text,
  textMap,
  texts,
  value,
} from './chart-value-types.mjs'

const labelSelector = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    matchLabels: texts,
    matchExpressions: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['key', 'operator'],
        properties: {
          key: { type: 'string', minLength: 1 },
          operator: { enum: ['In', 'NotIn', 'Exists', 'DoesNotExist'] },
          values: { type: 'array', items: { type: 'string' } },
        },
        if: { properties: { operator: { enum: ['In', 'NotIn'] } } },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { required: ['values'], properties: { values: { minItems: 1 } } },
        else: { properties: { values: { maxItems: 0 } } },
      },
    },
  },
}

const parametersRef = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'namespace'],
  properties: {
    group: { type: 'string' },
    kind: { type: 'string', minLength: 1 },
    name,
    namespace: name,
  },
}

const controller = {
  replicaCount: value({ type: 'integer', minimum: 0 }, 'Replicas of the controller.'),
  image: {
    registry: text('Registry of its image; empty: `image.registry`.'),
    repository: text('Repository of its image.', { minLength: 1 }),
    tag: text('Tag of its image; empty: `image.tag`, else the version of the chart.'),
    pullPolicy: pullPolicy('Pull policy; empty: `image.pullPolicy`.'),
  },
  logLevel: value(
    { type: 'string', enum: ['trace', 'debug', 'info', 'warn', 'error', 'silent'] },
    'Log level for standard error.',
  ),
  extraEnv: value(
    environment,
    'More variables of its container: name to a scalar, to `{value}` or to `{valueFrom}`. One that the chart sets itself is replaced.',
  ),
  strategy: value(
    strategy,
    'Strategy of the Deployment. If empty, the default of Kubernetes: a rolling update with 25 % surge and 25 % unavailable (`Recreate` if `controller.persistence` is enabled).',
  ),
  podDisruptionBudget: value(
    budget,
    'Spec of a PodDisruptionBudget of the controller; empty: none. It does not affect proxies.',
  ),
  service: {
    type: value(
      { type: 'string', enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
      "Type of the controller's Service.",
    ),
    ports: {
      agwGrpc: port('Configuration for proxies (xDS over gRPC), the port `grpc-xds`.'),
      health: port('`/readyz` and `/healthz`.'),
      metrics: port('`/metrics`.'),
      console: port('The web console, if `controller.console.enabled`.'),
      admission: port('The admission webhook, if `controller.admission.enabled`.'),
    },
  },
  admission: {
    enabled: flag(
      'Judge objects when they are applied, by a ValidatingWebhookConfiguration that fails open ([safe change](safe-change.md#at-kubectl-apply)).',
    ),
    mode: value(
      { type: 'string', enum: ['deny', 'warn'] },
      'Refuse changes that `changeProtection` with the mode Hold would hold (`deny`), or only warn of them (`warn`).',
    ),
    timeoutSeconds: value(
      { type: 'integer', minimum: 1, maximum: 30 },
      'Seconds after which the API server admits an object without an answer. The controller answers within 4 seconds.',
    ),
    existingSecret: value(
      { type: 'string' },
      'Secret of the type `kubernetes.io/tls` with the certificate of the webhook, for `FULLNAME.NAMESPACE.svc`. If empty, the chart creates a certificate for ten years, and keeps it in upgrades.',
    ),
    caBundle: value(
      { type: 'string' },
      'Authorities (PEM) that have signed the certificate in `existingSecret`.',
    ),
    clientCaBundle: value(
      { type: 'string' },
      'Authorities (PEM) of client certificates. If set, the webhook only answers clients that present one, as [the API server](safe-change.md#only-the-api-server) can.',
    ),
    annotations: value(
      { type: 'object', additionalProperties: { type: 'string' } },
      'Annotations of the ValidatingWebhookConfiguration, such as `cert-manager.io/inject-ca-from`.',
    ),
  },
  console: {
    enabled: flag(
      'Serve the web console. It listens on the loopback address of the pod only: reach it with `kubectl port-forward`.',
    ),
    signIn: value(
      { type: 'string', enum: ['token', 'kubernetes', 'oidc'] },
      'Who may use the console: who reads the URL in the log of the controller (`token`), who has a token of the cluster and the verb `get` for `consoles.sluice.dev` (`kubernetes`), or who signs in at an OpenID provider, whose settings `extraEnv` has (`oidc`).',
    ),
    actions: flag(
      'Let people with the role `operate` act in the console: approve tools and held changes, roll back and freeze the configuration, and change dynamic keys.',
    ),
  },
  kubernetesEvents: {
    enabled: flag(
      'Write Kubernetes Events when conditions of objects change and when proxies reject configuration. `kubectl describe` shows them.',
    ),
  },
  xds: {
    tls: {
      enabled: flag(
        'Serve configuration over TLS. The Secret `sluice-xds-cert` (type `kubernetes.io/tls`, with `tls.crt`, `tls.key` and `ca.crt`) must be in the namespace of the release; without it the controller does not start.',
      ),
    },
  },
  grantStore: text(
    'Let all deployed proxies keep the tokens that users allow them to have (`oauthUserConsent`) on this NATS server: `nats://host:4222`. If it is empty, each proxy has a file, and users are asked at each. For an address with a password, such as `proxyUrl` of the Secret of the bundled server, set `SLUICE_GRANT_STORE` from a Secret in the `env` of GatewayParameters.',
    {
      pattern: '^((nats|tls)://.+)?$',
    },
  ),
  nats: {
    url: text(
      'Keep the event log on this NATS server, shared by all replicas: `nats://host:4222`.',
      {
        pattern: '^((nats|tls)://.+)?$',
      },
    ),
    urlSecretRef: value(
      {
        type: 'object',
        additionalProperties: false,
        properties: { name, key: { type: 'string', minLength: 1 } },
        dependencies: { name: ['key'], key: ['name'] },
      },
      'The same, from the Secret `name`, key `key`: a URL with a password belongs there.',
    ),
  },
  persistence,
  topologySpreadConstraints: objects(
    'Topology spread constraints of its pods. If empty, several replicas are spread over hosts and zones if possible.',
  ),
  priorityClassName: text('Priority class of its pods.'),
}

/** Needs no escape in a URL. */
const urlSafe = { pattern: '^[A-Za-z0-9._~-]*$' }

export const chartValues = {
  controller,
  image: {
    registry: text('Registry of all images, those of deployed proxies included.'),
    tag: text(
      'Tag of all images, those of deployed proxies included; empty: the version of the chart.',
    ),
    pullPolicy: pullPolicy('Pull policy.'),
  },
  ...common,
  discoveryNamespaceSelectors: value(
    { type: 'array', items: labelSelector },
    'Label selectors of the namespaces whose objects count: those that any entry matches (within an entry everything must). Empty: all. The namespace of the release always counts.',
  ),
  gatewayClassParametersRefs: value(
    { type: 'object', additionalProperties: parametersRef },
    'Name of a default GatewayClass (there is one, `agentgateway`) to the GatewayParameters that it refers to: `{name, namespace}`.',
  ),
  inferenceExtension: {
    enabled: flag(
      'Read InferencePools of the Gateway API Inference Extension and the Pods that they select, and route to them. If false, requests for a pool fail with 500, and a condition of the route has the reason.',
    ),
  },
  metrics: {
    serviceMonitor: monitor('ServiceMonitor for the controller'),
    podMonitor: monitor('PodMonitor for the proxies of every namespace'),
    dashboards: {
      enabled: flag('Make a ConfigMap with dashboards for Grafana.'),
      labels: textMap("Labels of it, by which Grafana's sidecar finds it."),
      annotations: textMap('Annotations of it.'),
    },
    alerts: {
      enabled: flag(
        "Make a PrometheusRule with alerts (the Prometheus operator's CRDs must be there).",
      ),
      labels: textMap('More labels of it, by which a Prometheus selects it.'),
    },
  },
  nats: {
    enabled: flag(
      'Install a NATS server of one replica for the event log, with a volume and a password.',
    ),
    image: text('Its image.', { minLength: 1 }),
    password: text('Its password; empty: one is made, and kept by upgrades.', urlSafe),
    proxyPassword: text(
      'The password of its user `proxy`, who may [only share grants and answers, and publish decision records](operations/nats.md#permissions); empty: one is made, and kept by upgrades.',
      urlSafe,
    ),
    storageClassName: text('Storage class of its volume; empty: the default of the cluster.'),
    size: quantity('Size of its volume.'),
    resources: freeObject('Its requests and limits.'),
  },
  networkPolicy: {
    enabled: flag(
      'Create NetworkPolicies. The controller then accepts connections only at its ports. The NATS server of this chart accepts them only from the controller, and from proxies if `controller.grantStore` is set.',
    ),
    apiServerCidrs: value(
      { type: 'array', items: { type: 'string' } },
      'Addresses of the API server (CIDR). Only they may then connect to the admission webhook. If empty, any address may, because no selector matches the API server.',
    ),
  },
  tests: {
    listenerPort: port('Port of the Gateway that `helm test` makes and sends a request through.'),
  },
}
