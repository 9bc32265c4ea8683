/** References from one object to another. */
import { choice, type Infer, integer, object, optional, required, text } from '../field.ts'
import { rule } from '../rules.ts'
import { groupName, kindName, namespaceName, sectionName } from '../strings.ts'

export const portNumber = integer({ name: 'Port', min: 1, max: 65_535 })

/** Names of referenced objects. Only the length is checked, because each kind has its own rules for names. */
export const referenceName = text({ name: 'ObjectName', min: 1, max: 253 })

const localFields = {
  name: required(referenceName, 'Name of the object, in the namespace of the referring object.'),
} as const

/** A reference to an object of the given kind in the same namespace. */
export const localReference = (refersTo: 'Secret' | 'ConfigMap') =>
  object('LocalObjectReference', localFields, { refersTo })

/** A reference to an entry of a Secret in the same namespace. `name` is the name of the shape, for each default another. */
export const secretKeyReference = (name: string, byDefault: string) =>
  object(
    name,
    {
      ...localFields,
      key: optional(text({ min: 1, max: 253 }), {
        doc: 'Name of the entry.',
        default: byDefault,
      }),
    },
    { refersTo: 'Secret' },
  )

/** A reference to certificates of authorities, in a ConfigMap or a Secret of the same namespace. */
export const certificateAuthorityReference = object(
  'CACertificateReference',
  {
    kind: optional(choice('CACertificateKind', { ConfigMap: 'a ConfigMap', Secret: 'a Secret' }), {
      doc: 'Kind of the object.',
      default: 'ConfigMap',
    }),
    ...localFields,
  },
  { refersTo: 'ConfigMap' },
)

/** A reference to the client secret in a Secret. */
export const clientSecretReference = secretKeyReference('ClientSecretReference', 'clientSecret')

interface PortedReference {
  readonly group?: string
  readonly kind?: string
  readonly port?: number
}

/** A reference to a core Service must have a port. */
export const servicePortRule = rule<PortedReference>({
  message: 'must have port for Service reference',
  cel: "((!has(self.group) || self.group == '') && (!has(self.kind) || self.kind == 'Service')) ? has(self.port) : true",
  holds: (ref) =>
    (ref.group ?? '') !== '' || (ref.kind ?? 'Service') !== 'Service' || ref.port !== undefined,
  at: 'port',
})

const backendReferenceFields = {
  group: optional(groupName, { doc: 'API group; empty for a Service.', default: '' }),
  kind: optional(kindName, { doc: 'Kind of the destination.', default: 'Service' }),
  name: required(referenceName, 'Name of the destination.'),
  namespace: optional(namespaceName, {
    doc: 'Namespace of the destination; another namespace needs a ReferenceGrant there. Default: the namespace of the referring object.',
  }),
  port: optional(portNumber, 'Port of the destination; required for a Service.'),
} as const

/** A reference to a Service or a GatewayBackend. */
export const backendObjectReference = object('BackendObjectReference', backendReferenceFields, {
  rules: [servicePortRule],
})
export type BackendObjectReference = Infer<typeof backendObjectReference>

/** Gateway API ParentReference in a status; the parent need not exist (GEP-713). */
export const parentReference = object('ParentReference', {
  group: optional(groupName, {
    doc: 'API group of the parent.',
    default: 'gateway.networking.k8s.io',
  }),
  kind: optional(kindName, { doc: 'Kind of the parent.', default: 'Gateway' }),
  namespace: optional(namespaceName, 'Namespace of the parent.'),
  name: required(referenceName, 'Name of the parent.'),
  sectionName: optional(sectionName, 'Listener or entry of the parent.'),
  port: optional(portNumber, 'Port of the parent.'),
})
