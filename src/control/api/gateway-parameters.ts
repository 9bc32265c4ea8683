/** GatewayParameters: how the proxy of a Gateway is deployed. */
import {
  amount,
  boolean,
  choice,
  type Infer,
  integer,
  intOrString,
  jsonObject,
  list,
  map,
  object,
  optional,
  quantity,
  required,
  text,
} from '../../ground/schema/field.ts'
import { rule } from '../../ground/schema/rules.ts'
import { duration } from '../../ground/schema/strings.ts'

const anyText = text({ max: 4096 })
const key = text({ min: 1, max: 317 })

const configMapOrSecretKey = (name: string) =>
  object(name, {
    name: optional(text({ max: 253 }), 'Name of the object.'),
    key: required(text({ min: 1, max: 253 }), 'Key in the object.'),
    optional: optional(boolean(), 'Whether the object or the key may be missing.'),
  })

const envVarSource = object('EnvVarSource', {
  fieldRef: optional(
    object('ObjectFieldSelector', {
      apiVersion: optional(anyText, 'Version of the schema to which fieldPath refers.'),
      fieldPath: required(anyText, 'Field of the pod.'),
    }),
    'A field of the pod.',
  ),
  resourceFieldRef: optional(
    object('ResourceFieldSelector', {
      containerName: optional(anyText, 'Container.'),
      resource: required(anyText, 'Resource, such as limits.cpu.'),
      divisor: optional(quantity(), 'Unit of the value.'),
    }),
    'A resource of the container.',
  ),
  configMapKeyRef: optional(configMapOrSecretKey('ConfigMapKeySelector'), 'A key of a ConfigMap.'),
  secretKeyRef: optional(configMapOrSecretKey('SecretKeySelector'), 'A key of a Secret.'),
  fileKeyRef: optional(
    object('FileKeySelector', {
      volumeName: required(anyText, 'Volume with the file.'),
      path: required(anyText, 'Path of the file in the volume.'),
      key: required(anyText, 'Key in the file.'),
      optional: optional(boolean(), 'Whether the file or the key may be missing.'),
    }),
    'A key of a file.',
  ),
})

const envVar = object('EnvVar', {
  name: required(text({ min: 1, max: 1024 }), 'Name of the variable.'),
  value: optional(
    text({ max: 131_072 }),
    'Value. $(NAME) is replaced by another variable, $$(NAME) by the text $(NAME).',
  ),
  valueFrom: optional(envVarSource, 'Source of the value.'),
})

const quantities = map(amount(), { max: 64 })

const resources = object('ResourceRequirements', {
  limits: optional(quantities, 'Limits of the container.'),
  requests: optional(quantities, 'Requests of the container.'),
  claims: optional(
    list(
      object('ResourceClaim', {
        name: required(anyText, 'Entry of resourceClaims of the pod.'),
        request: optional(anyText, 'Request of the claim.'),
      }),
      { max: 64, unique: { by: ['name'] } },
    ),
    'Resource claims of the container.',
  ),
})

const logging = object('ParametersLogging', {
  level: optional(anyText, {
    doc: 'Level in the syntax of RUST_LOG: one level, or levels by module with commas between them.',
    default: 'info',
  }),
  format: optional(choice('ParametersLoggingFormat', { json: 'JSON lines', text: 'plain lines' }), {
    doc: 'Form of log lines.',
    default: 'text',
  }),
})

const image = object('Image', {
  registry: optional(anyText, 'Registry.'),
  repository: optional(anyText, 'Repository.'),
  tag: optional(anyText, 'Tag. If not set, the version of the controller.'),
  digest: optional(anyText, 'Digest, such as sha256:…. It overrides the tag.'),
  pullPolicy: optional(
    choice('PullPolicy', {
      Always: 'pull at every start',
      IfNotPresent: 'pull if the image is missing',
      Never: 'never pull',
    }),
    'When the image is pulled; the platform decides if not set.',
  ),
})

const seconds = integer({ min: 0, max: 31_536_000 })

interface Shutdown {
  readonly min: number
  readonly max: number
}

const shutdown = object(
  'ShutdownSpec',
  {
    min: required(seconds, {
      doc: 'Minimum time between the stop signal and the end (CONNECTION_MIN_TERMINATION_DEADLINE).',
      unit: 'seconds',
    }),
    max: required(seconds, {
      doc: 'Maximum time between the stop signal and the end (TERMINATION_GRACE_PERIOD_SECONDS).',
      unit: 'seconds',
    }),
  },
  {
    rules: [
      rule<Shutdown>({
        message: 'min must not be greater than max',
        cel: 'self.min <= self.max',
        holds: ({ min, max }) => min <= max,
        at: 'min',
      }),
    ],
  },
)

const mesh = object('MeshSpec', {
  caAddress: optional(anyText, {
    doc: 'Address of the certificate authority of the mesh.',
    default: 'https://istiod.istio-system.svc:15012',
  }),
  trustDomain: optional(anyText, { doc: 'Trust domain of the mesh.', default: 'cluster.local' }),
})

const catalogSource = object('ModelCatalogSource', {
  configMap: required(
    object('ModelCatalogConfigMap', {
      name: required(
        text({ min: 1, max: 253 }),
        'Name of a ConfigMap in the namespace of the Gateway.',
      ),
      key: optional(text({ min: 1, max: 253 }), {
        doc: 'Key with the catalog, in JSON.',
        default: 'catalog.json',
      }),
    }),
    'A key of a ConfigMap.',
  ),
})

const modelCatalog = object('ModelCatalogSpec', {
  sources: required(
    list(catalogSource, { min: 1, max: 16 }),
    'Catalogs in addition to the one that ships with the proxy. Of several that describe a model, the last one wins.',
  ),
})

const stdio = object('StdioSpec', {
  image: optional(
    image,
    'Image of the container, which needs Sluice and the programs of the commands. Parts that are not set are those of the proxy.',
  ),
  resources: optional(resources, 'Compute resources of the container.'),
  namespaces: optional(
    choice('StdioNamespaces', {
      Same: 'GatewayBackends in the namespace of the Gateway',
      All: 'GatewayBackends of any namespace that a route may refer to',
    }),
    { doc: 'Which GatewayBackends may have commands.', default: 'Same' },
  ),
})

const share = text({ max: 8, pattern: '^(100|[0-9]{1,2}(\\.[0-9]{1,4})?)%$' })

const changeProtection = object('ChangeProtection', {
  mode: optional(
    choice('ChangeProtectionMode', {
      Off: 'changes take effect at once',
      Warn: 'changes are judged and take effect; conditions that are not met are reported',
      Hold: 'changes that do not meet a condition wait until they are approved',
    }),
    { doc: 'What happens to changes.', default: 'Off' },
  ),
  maxRefused: optional(share, {
    doc: 'Maximum share of the recorded requests to the Gateway that become refused or unrouted.',
    default: '0.1%',
  }),
  maxAdmitted: optional(share, {
    doc: 'Maximum share of the recorded requests to the Gateway that authentication or authorization refuses now and the change would admit.',
    default: '0%',
  }),
  maxUndecided: optional(share, {
    doc: 'Maximum share of the recorded requests to the Gateway of which it is unknown what the change does to them.',
    default: '5%',
  }),
  maxCostIncrease: optional(text({ max: 10, pattern: '^[0-9]{1,4}(\\.[0-9]{1,4})?%$' }), {
    doc: 'Maximum increase of what the recorded requests to the Gateway cost at models, such as 10%. Not compared if not set.',
  }),
  removedProtections: optional(
    choice('ChangeProtectionRemoval', {
      Refuse: 'they do not meet the condition',
      Allow: 'they are not checked',
    }),
    {
      doc: 'Changes that remove authentication, authorization, a limit, a guard or this protection from an object that remains, or from requests that another route or backend then serves.',
      default: 'Refuse',
    },
  ),
  lostListeners: optional(
    choice('ChangeProtectionListeners', {
      Refuse: 'they do not meet the condition',
      Allow: 'they are not checked',
    }),
    { doc: 'Changes after which a listener no longer serves.', default: 'Refuse' },
  ),
})
export type ChangeProtectionSpec = Infer<typeof changeProtection>

interface RolloutStep {
  readonly proxies: number | string
}

const rolloutStep = object(
  'RolloutStep',
  {
    proxies: required(
      intOrString({ pattern: '^([1-9][0-9]?|100)%$', expects: 'a number, or a share such as 25%' }),
      'Number of proxies, or share of the proxies of the Gateway.',
    ),
  },
  {
    rules: [
      rule<RolloutStep>({
        message: 'proxies must be from 1 to 10000, or a share',
        cel: 'type(self.proxies) == string || (int(self.proxies) > 0 && int(self.proxies) <= 10000)',
        holds: ({ proxies }) => typeof proxies === 'string' || (proxies > 0 && proxies <= 10_000),
        at: 'proxies',
      }),
    ],
  },
)

const rollout = object('Rollout', {
  steps: required(
    list(rolloutStep, { min: 1, max: 16 }),
    'Steps in which the proxies get a change. After the last one, all have it.',
  ),
  hold: optional(duration, { doc: 'Time between two steps.', default: '60s' }),
  analysis: optional(
    list(
      choice('RolloutAnalysis', {
        Errors: 'responses with 5xx',
        Refusals: 'responses with 4xx from the gateway itself, in total and by policy',
        ClientErrors: 'all responses with 4xx',
        Latency: 'requests that took longer than 25ms, 50ms, 100ms and so on up to 10s',
        Resets: 'requests whose connection to the backend failed',
        Guards: 'matches of prompt guards',
        Costs:
          'requests to language models that cost more than 0.000001 USD, twice that, and so on',
      }),
      { max: 7, unique: 'value' },
    ),
    'Figures, in total and by route, in which proxies with the change must not be worse than the others in the same time. Errors and Refusals if not set; with an empty list, nothing is compared.',
  ),
})
export type RolloutSpec = Infer<typeof rollout>

const metadataMap = map(text({ max: 262_144 }), { keys: key, max: 256, refusesNull: true })

const overlay = object('KubernetesResourceOverlay', {
  metadata: optional(
    object('ParametersObjectMetadata', {
      labels: optional(metadataMap, 'Labels that are added.'),
      annotations: optional(metadataMap, 'Annotations that are added.'),
    }),
    'Labels and annotations of the generated object.',
  ),
  spec: optional(
    jsonObject(),
    'Whole or partial spec, merged into the generated one by strategic merge patch after everything else.',
  ),
})

const workload = object('ProxyWorkload', {
  kind: required(
    choice('ProxyWorkloadKind', {
      Deployment: 'a number of proxies, which an autoscaler can change',
      DaemonSet: 'one proxy on each node',
    }),
    'Kind of the object that runs the proxies.',
  ),
})

export const gatewayParametersSpec = object('ParametersSpec', {
  logging: optional(logging, 'Logs of the proxy.'),
  rawConfig: optional(
    jsonObject(),
    'Content of the configuration file of the proxy. The other fields of this object override it.',
  ),
  image: optional(image, 'Image of the proxy.'),
  env: optional(
    list(envVar, { max: 1024 }),
    'Environment of the proxy; overrides generated variables. Delete one with $patch: delete in deployment.',
  ),
  resources: optional(resources, 'Compute resources of the proxy.'),
  shutdown: optional(shutdown, 'How long a proxy continues to serve after the stop signal.'),
  mesh: optional(
    mesh,
    'Gives the proxy an identity and the authorities of a mesh, for mutual TLS to its pods. HBONE is not supported yet.',
  ),
  modelCatalog: optional(
    modelCatalog,
    'Rules, limits and prices of language models. Only parameters of a Gateway can set it; a change takes effect while the proxy runs.',
  ),
  stdio: optional(
    stdio,
    'Runs MCP servers that are commands (`stdio` targets) in a container next to the proxy. Off if not set.',
  ),
  changeProtection: optional(
    changeProtection,
    'Judges configuration changes on recorded requests before they take effect. Parameters of a Gateway replace those of its class as a whole.',
  ),
  rollout: optional(
    rollout,
    'Delivers configuration changes to a part of the proxies first, and takes them back if these fail more often. Parameters of a Gateway replace those of its class as a whole.',
  ),
  workload: optional(
    workload,
    'What runs the proxies. Parameters of a Gateway replace those of its class.',
  ),
  deployment: optional(overlay, 'Changes to the generated Deployment.'),
  daemonSet: optional(
    overlay,
    'Changes to the generated DaemonSet, if `workload.kind` is DaemonSet.',
  ),
  service: optional(overlay, 'Changes to the generated Service.'),
  serviceAccount: optional(overlay, 'Changes to the generated ServiceAccount.'),
  podDisruptionBudget: optional(
    overlay,
    'A PodDisruptionBudget for the proxy, with these changes; none if not set.',
  ),
  horizontalPodAutoscaler: optional(
    overlay,
    'A HorizontalPodAutoscaler for the proxy, with these changes; none if not set.',
  ),
})
export type GatewayParametersSpec = Infer<typeof gatewayParametersSpec>

export const gatewayParametersStatus = object('ParametersStatus', {})
