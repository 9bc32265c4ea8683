/** ReferenceGrant and BackendTLSPolicy. */
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
import { referenceName } from '../../../ground/schema/shapes/references.ts'
import {
  groupName,
  kindName,
  namespaceName,
  preciseHostname,
  sectionName,
  wildcardHostname,
} from '../../../ground/schema/strings.ts'
import { localRef, tlsOptions } from './common.ts'

export const referenceGrantSpec = object('ReferenceGrantSpec', {
  from: required(
    list(
      object('ReferenceGrantFrom', {
        group: required(groupName, 'API group.'),
        kind: required(kindName, 'Kind.'),
        namespace: required(namespaceName, 'Namespace.'),
      }),
      { min: 1, max: 16 },
    ),
    'Who may refer.',
  ),
  to: required(
    list(
      object('ReferenceGrantTo', {
        group: required(groupName, 'API group.'),
        kind: required(kindName, 'Kind.'),
        name: optional(referenceName, 'Name; all of the kind if not set.'),
      }),
      { min: 1, max: 16 },
    ),
    'What may be referred to.',
  ),
})

interface Target {
  readonly group: string
  readonly kind: string
  readonly name: string
  readonly sectionName?: string
}

const sameTargets = (refs: readonly Target[]) => [
  ...Map.groupBy(refs, ({ group, kind, name }) => JSON.stringify([group, kind, name])).values(),
]

const targetRefs = list(
  object('LocalPolicyTargetReferenceWithSectionName', {
    group: required(groupName, 'API group.'),
    kind: required(kindName, 'Kind.'),
    name: required(referenceName, 'Name.'),
    sectionName: optional(sectionName, 'Port of a Service.'),
  }),
  {
    min: 1,
    max: 16,
    rules: [
      rule<readonly Target[]>({
        message:
          'sectionName must be specified when targetRefs includes 2 or more references to the same target',
        holds: (refs) =>
          sameTargets(refs).every(
            (group) => group.length === 1 || group.every((ref) => (ref.sectionName ?? '') !== ''),
          ),
      }),
      rule<readonly Target[]>({
        message:
          'sectionName must be unique when targetRefs includes 2 or more references to the same target',
        holds: (refs) =>
          sameTargets(refs).every(
            (group) => new Set(group.map((ref) => ref.sectionName ?? '')).size === group.length,
          ),
      }),
    ],
  },
)

interface AltName {
  readonly type: string
  readonly hostname?: string
  readonly uri?: string
}

const altNameRules = (type: string, member: 'hostname' | 'uri') => [
  rule<AltName>({
    message: `must contain ${member} if type is ${type}`,
    holds: (name) => name.type !== type || (name[member] ?? '') !== '',
  }),
  rule<AltName>({
    message: `must not contain ${member} if type is not ${type}`,
    holds: (name) => name.type === type || (name[member] ?? '') === '',
  }),
]

const altName = object(
  'SubjectAltName',
  {
    type: required(choice('SubjectAltNameType', { Hostname: '', URI: '' }), 'Which member is set.'),
    hostname: optional(wildcardHostname, 'DNS name.'),
    uri: optional(
      text({
        min: 1,
        max: 253,
        pattern: '^(([^:/?#]+):)(//([^/?#]*))([^?#]*)(\\?([^#]*))?(#(.*))?',
        expects: 'an absolute URI',
      }),
      'URI.',
    ),
  },
  { rules: [...altNameRules('Hostname', 'hostname'), ...altNameRules('URI', 'uri')] },
)

interface Validation {
  readonly caCertificateRefs?: readonly unknown[]
  readonly wellKnownCACertificates?: string
}

const authorities = ({ caCertificateRefs, wellKnownCACertificates }: Validation): number =>
  ((caCertificateRefs?.length ?? 0) > 0 ? 1 : 0) + ((wellKnownCACertificates ?? '') === '' ? 0 : 1)

const validation = object(
  'BackendTLSPolicyValidation',
  {
    caCertificateRefs: optional(list(localRef, { max: 8 }), 'ConfigMaps of authorities.'),
    wellKnownCACertificates: optional(text({ min: 1, max: 253 }), 'System, or a name of ours.'),
    hostname: required(preciseHostname, 'Server name that is sent and verified.'),
    subjectAltNames: optional(list(altName, { max: 5 }), 'Names that are verified instead.'),
  },
  {
    rules: [
      rule<Validation>({
        message: 'must not contain both caCertificateRefs and wellKnownCACertificates',
        holds: (value) => authorities(value) < 2,
      }),
      rule<Validation>({
        message: 'must specify either caCertificateRefs or wellKnownCACertificates',
        holds: (value) => authorities(value) > 0,
      }),
    ],
  },
)

export const backendTlsPolicySpec = object('BackendTLSPolicySpec', {
  targetRefs: required(targetRefs, 'Services that TLS is spoken to.'),
  validation: required(validation, 'How the server is verified.'),
  options: optional(tlsOptions, 'Settings of the implementation.'),
})
export type BackendTlsPolicySpec = Infer<typeof backendTlsPolicySpec>
