/** Listeners of Gateway and ListenerSet. */

import { gatewayGroup } from '../../../ground/model/api-names.ts'
import {
  choice,
  type Infer,
  list,
  object,
  optional,
  required,
  text,
} from '../../../ground/schema/field.ts'
import { rule } from '../../../ground/schema/rules.ts'
import { portNumber } from '../../../ground/schema/shapes/references.ts'
import { labelSelector } from '../../../ground/schema/shapes/selectors.ts'
import {
  groupName,
  kindName,
  sectionName,
  wildcardHostname,
} from '../../../ground/schema/strings.ts'
import { secretRef, tlsOptions } from './common.ts'

const fromNamespaces = choice('FromNamespaces', {
  All: 'every namespace',
  Selector: 'namespaces that the selector takes',
  Same: 'the namespace of the Gateway',
})

const routeNamespaces = object('RouteNamespaces', {
  from: optional(fromNamespaces, { doc: 'Namespaces of routes.', fill: 'Same' }),
  selector: optional(labelSelector, 'Namespaces, where from is Selector.'),
})

const allowedRoutes = object('AllowedRoutes', {
  kinds: optional(
    list(
      object('RouteGroupKind', {
        group: optional(groupName, { doc: 'API group.', fill: gatewayGroup }),
        kind: required(kindName, 'Kind.'),
      }),
      { max: 8 },
    ),
    'Kinds of routes; those that fit the protocol if not set.',
  ),
  namespaces: optional(routeNamespaces, {
    doc: 'Namespaces that routes may come from.',
    fill: { from: 'Same' },
  }),
})

interface Tls {
  readonly mode?: string
  readonly certificateRefs?: readonly unknown[]
  readonly options?: object
}

const listenerTls = object(
  'ListenerTLSConfig',
  {
    mode: optional(
      choice('TLSModeType', { Terminate: 'TLS ends here', Passthrough: 'TLS ends at the backend' }),
      { doc: 'Where TLS ends.', fill: 'Terminate' },
    ),
    certificateRefs: optional(list(secretRef, { max: 64 }), 'Certificates, as Secrets.'),
    options: optional(tlsOptions, 'Settings of the implementation.'),
  },
  {
    rules: [
      rule<Tls>({
        message: 'certificateRefs or options must be specified when mode is Terminate',
        holds: ({ mode, certificateRefs, options }) =>
          (mode ?? 'Terminate') !== 'Terminate' ||
          (certificateRefs?.length ?? 0) > 0 ||
          Object.keys(options ?? {}).length > 0,
      }),
    ],
  },
)

const listener = object('Listener', {
  name: required(sectionName, 'Name; unique in the object.'),
  hostname: optional(wildcardHostname, 'Hosts that are served; every host if not set.'),
  port: required(portNumber, 'Port that is listened on.'),
  protocol: required(
    text({
      min: 1,
      max: 255,
      pattern:
        '^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\\/[A-Za-z0-9]+$',
      expects: 'a protocol, such as HTTP',
    }),
    'HTTP, HTTPS, TLS, TCP or UDP.',
  ),
  tls: optional(listenerTls, 'Certificates and mode, for HTTPS and TLS.'),
  allowedRoutes: optional(allowedRoutes, {
    doc: 'Routes that may attach.',
    fill: { namespaces: { from: 'Same' } },
  }),
})
export type ListenerSpec = Infer<typeof listener>

const each = (message: string, holds: (listener: ListenerSpec) => boolean) =>
  rule<readonly ListenerSpec[]>({ message, holds: (all) => all.every(holds) })

/** A list of listeners, with the validation rules that the CRDs of Gateway and ListenerSet contain. */
export const listeners = list(listener, {
  min: 1,
  max: 64,
  unique: { by: ['name'] },
  rules: [
    each(
      'tls must not be specified for protocols HTTP, TCP, UDP',
      ({ protocol, tls }) => !['HTTP', 'TCP', 'UDP'].includes(protocol) || tls === undefined,
    ),
    each(
      'tls mode must be Terminate for protocol HTTPS',
      ({ protocol, tls }) => protocol !== 'HTTPS' || tls?.mode !== 'Passthrough',
    ),
    each(
      'tls must be specified for protocol TLS',
      ({ protocol, tls }) => protocol !== 'TLS' || tls !== undefined,
    ),
    each(
      'hostname must not be specified for protocols TCP, UDP',
      ({ protocol, hostname }) => !['TCP', 'UDP'].includes(protocol) || hostname === undefined,
    ),
    rule<readonly ListenerSpec[]>({
      message: 'combination of port, protocol and hostname must be unique for each listener',
      holds: (all) => {
        const places = all.map((l) => JSON.stringify([l.port, l.protocol, l.hostname ?? null]))
        return new Set(places).size === places.length
      },
    }),
  ],
})
