/** The core Kubernetes kinds that the gateway reads. Only fields that it uses are typed; others are kept. */
import {
  boolean,
  type Infer,
  integer,
  intOrString,
  jsonObject,
  list,
  map,
  object,
  optional,
  required,
  text,
  withRules,
} from '../../ground/schema/field.ts'
import { rule } from '../../ground/schema/rules.ts'

const open = { open: true } as const
const word = text()

const servicePort = object(
  'ServicePort',
  {
    name: optional(word, 'Name; may be empty if there is only one port.'),
    port: required(integer({ min: 1, max: 65_535 }), 'Port of the Service.'),
    protocol: optional(word, 'TCP if not set.'),
    targetPort: optional(intOrString(), 'Port of the pods; port if not set.'),
    appProtocol: optional(word, 'Protocol of the application.'),
  },
  open,
)

const serviceSpec = object(
  'ServiceSpec',
  {
    type: optional(word, 'ClusterIP if not set.'),
    clusterIP: optional(word, 'None for a headless Service.'),
    clusterIPs: optional(list(word), 'One for each family; the first is clusterIP.'),
    externalName: optional(word, 'Host name, for type ExternalName.'),
    ports: optional(list(servicePort), 'Ports.'),
    selector: optional(map(word), 'Pods.'),
    publishNotReadyAddresses: optional(boolean(), 'Endpoints count before they are ready.'),
  },
  open,
)
export type ServiceSpec = Infer<typeof serviceSpec>

export const serviceBody = {
  spec: optional(serviceSpec, 'Spec.'),
  status: optional(jsonObject(), 'Status.'),
} as const

const hint = object('EndpointHint', { name: required(word, 'Name.') }, open)

const endpoint = object(
  'Endpoint',
  {
    addresses: required(list(word, { min: 1, max: 100 }), 'Addresses; the first is used.'),
    conditions: optional(
      object(
        'EndpointConditions',
        {
          ready: optional(boolean(), 'Ready; true if not set.'),
          serving: optional(boolean(), 'Ready, whether terminating or not.'),
          terminating: optional(boolean(), 'Going away.'),
        },
        open,
      ),
      'Conditions.',
    ),
    hostname: optional(word, 'Host name of the pod.'),
    nodeName: optional(word, 'Node.'),
    zone: optional(word, 'Zone.'),
    hints: optional(
      object(
        'EndpointHints',
        {
          forZones: optional(list(hint), 'Zones that it should serve.'),
          forNodes: optional(list(hint), 'Nodes that it should serve.'),
        },
        open,
      ),
      'Whom it should serve.',
    ),
    targetRef: optional(jsonObject(), 'The pod.'),
  },
  open,
)

const endpointPort = object(
  'EndpointPort',
  {
    name: optional(word, 'Name of the Service port.'),
    port: optional(integer({ min: 0, max: 65_535 }), 'Port.'),
    protocol: optional(word, 'TCP if not set.'),
    appProtocol: optional(word, 'Protocol of the application.'),
  },
  open,
)

export type EndpointSpec = Infer<typeof endpoint>

export const endpointSliceBody = {
  addressType: required(word, 'IPv4, IPv6 or FQDN.'),
  endpoints: optional(list(endpoint, { max: 1000 }), 'Endpoints.'),
  ports: optional(list(endpointPort, { max: 100 }), 'Ports of every endpoint.'),
} as const

const encoded = /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

// Line breaks inside the text are ignored, as the API server ignores them.
const base64 = withRules(
  text(),
  rule<string>({
    message: 'must be base64; for plain text use stringData',
    holds: (value) => encoded.test(value.replaceAll(/[\r\n]/g, '')),
  }),
)

const dataKey = text({
  min: 1,
  max: 253,
  pattern: '^[-._a-zA-Z0-9]+$',
  expects: "letters, digits, '-', '_' and '.'",
})

export const secretBody = {
  type: optional(word, 'Kind of secret; Opaque if not set.'),
  data: optional(map(base64, { keys: dataKey }), { doc: 'Values in base64.', secret: 'value' }),
  stringData: optional(map(word, { keys: dataKey }), {
    doc: 'Values as text; they win over data.',
    secret: 'value',
  }),
  immutable: optional(boolean(), 'May it change?'),
} as const

export const configMapBody = {
  data: optional(map(word, { keys: dataKey }), 'Values as text.'),
  binaryData: optional(map(base64, { keys: dataKey }), 'Values in base64.'),
  immutable: optional(boolean(), 'May it change?'),
} as const

export const namespaceBody = {
  spec: optional(jsonObject(), 'Spec.'),
  status: optional(jsonObject(), 'Status.'),
} as const

const podCondition = object(
  'PodCondition',
  { type: required(word, 'Type.'), status: required(word, 'True, False or Unknown.') },
  open,
)

export const podBody = {
  spec: optional(jsonObject(), 'Spec.'),
  status: optional(
    object(
      'PodStatus',
      {
        phase: optional(word, 'Running if it serves.'),
        podIP: optional(word, 'Address.'),
        conditions: optional(list(podCondition), 'Ready is what counts.'),
      },
      open,
    ),
    'Status.',
  ),
} as const
