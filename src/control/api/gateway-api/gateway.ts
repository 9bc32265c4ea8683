import { gatewayGroup } from '../../../ground/model/api-names.ts'
import {
  choice,
  type Infer,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../../ground/schema/field.ts'
import { rule } from '../../../ground/schema/rules.ts'
import { portNumber, referenceName } from '../../../ground/schema/shapes/references.ts'
import { labelSelector } from '../../../ground/schema/shapes/selectors.ts'
import {
  controllerName,
  groupName,
  kindName,
  namespaceName,
} from '../../../ground/schema/strings.ts'
import { annotationValue, defaultScope, localRef, objectRef, secretRef } from './common.ts'
import { listeners } from './listeners.ts'

export const gatewayClassSpec = object('GatewayClassSpec', {
  controllerName: required(controllerName, 'Controller that owns the class.'),
  parametersRef: optional(objectRef, 'Parameters of the class.'),
  description: optional(text({ max: 64 }), 'For readers.'),
})

interface Address {
  readonly type?: string
  readonly value?: string
}

const hostnamePattern = /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

const uniqueOf = (type: string) =>
  rule<readonly Address[]>({
    message: `${type} values must be unique`,
    holds: (all) => {
      const values = all.flatMap((address) =>
        (address.type ?? 'IPAddress') === type && address.value !== undefined
          ? [address.value]
          : [],
      )
      return new Set(values).size === values.length
    },
  })

const address = object(
  'GatewaySpecAddress',
  {
    type: optional(text({ min: 1, max: 253 }), { doc: 'Kind of address.', fill: 'IPAddress' }),
    value: optional(text({ max: 253 }), 'Address; one is chosen if not set.'),
  },
  {
    rules: [
      rule<Address>({
        message: 'Hostname value must be empty or contain only valid characters',
        holds: ({ type, value }) =>
          type !== 'Hostname' || value === undefined || hostnamePattern.test(value),
        at: 'value',
      }),
    ],
  },
)

const infrastructure = object('GatewayInfrastructure', {
  labels: optional(map(text({ max: 63 }), { max: 8 }), 'Labels of generated objects.'),
  annotations: optional(map(annotationValue, { max: 16 }), 'Annotations of generated objects.'),
  parametersRef: optional(localRef, 'Parameters of this Gateway.'),
})

const clientValidation = object('TLSConfig', {
  validation: optional(
    object('FrontendTLSValidation', {
      caCertificateRefs: required(
        list(objectRef, { min: 1, max: 16 }),
        'Authorities that client certificates must come from.',
      ),
      mode: optional(
        choice('FrontendValidationModeType', {
          AllowValidOnly: 'a valid certificate is required',
          AllowInsecureFallback: 'a missing or invalid certificate is let through',
        }),
        { doc: 'What happens without a valid certificate.', fill: 'AllowValidOnly' },
      ),
    }),
    'Client certificates.',
  ),
})

const frontendTls = object('FrontendTLSConfig', {
  default: required(clientValidation, 'Applies to every port that perPort does not list.'),
  perPort: optional(
    list(
      object('TLSPortConfig', {
        port: required(portNumber, 'Port.'),
        tls: required(clientValidation, 'For listeners on the port.'),
      }),
      { max: 64, unique: { by: ['port'] } },
    ),
    'For single ports.',
  ),
})
export type FrontendTlsSpec = Infer<typeof frontendTls>

const gatewayTls = object('GatewayTLSConfig', {
  backend: optional(
    object('GatewayBackendTLS', {
      clientCertificateRef: optional(secretRef, 'Certificate presented to backends.'),
    }),
    'TLS to backends.',
  ),
  frontend: optional(frontendTls, 'TLS from clients.'),
})

const listenerNamespaces = object('ListenerNamespaces', {
  from: optional(
    choice('FromListenerNamespaces', {
      All: 'every namespace',
      Selector: 'namespaces that the selector takes',
      Same: 'the namespace of the Gateway',
      None: 'no ListenerSet may attach',
    }),
    { doc: 'Namespaces of ListenerSets.', fill: 'None' },
  ),
  selector: optional(labelSelector, 'Namespaces, where from is Selector.'),
})
/** Also used for the `allowedRoutes` of listeners, which do not allow `None`. */
export type AllowedNamespaces = Infer<typeof listenerNamespaces>

const allowedListeners = object('AllowedListeners', {
  namespaces: optional(listenerNamespaces, {
    doc: 'Namespaces that ListenerSets may come from.',
    fill: { from: 'None' },
  }),
})

const className = text({ min: 1, max: 253, refersTo: 'GatewayClass' })

export const gatewaySpec = object('GatewaySpec', {
  gatewayClassName: required(className, 'Class.'),
  listeners: required(listeners, 'What is listened on.'),
  addresses: optional(
    list(address, { max: 16, rules: [uniqueOf('IPAddress'), uniqueOf('Hostname')] }),
    'Requested addresses.',
  ),
  infrastructure: optional(infrastructure, 'Generated objects.'),
  allowedListeners: optional(allowedListeners, 'ListenerSets that may attach.'),
  tls: optional(gatewayTls, 'TLS beyond single listeners.'),
  defaultScope: optional(defaultScope, {
    doc: 'Takes routes with useDefaultGateways (experimental).',
    support: 'pending',
  }),
})
export type GatewaySpec = Infer<typeof gatewaySpec>

export const listenerSetSpec = object('ListenerSetSpec', {
  parentRef: required(
    object('ParentGatewayReference', {
      group: optional(groupName, { doc: 'API group.', fill: gatewayGroup }),
      kind: optional(kindName, { doc: 'Kind.', fill: 'Gateway' }),
      name: required(referenceName, 'Name.'),
      namespace: optional(namespaceName, 'Namespace; that of the ListenerSet if not set.'),
    }),
    'The Gateway that the listeners join.',
  ),
  listeners: required(listeners, 'What is listened on.'),
})
export type ListenerSetSpec = Infer<typeof listenerSetSpec>
