/** The fields of metav1.ObjectMeta that manifests and watches carry. */
import {
  boolean,
  type Infer,
  integer,
  json,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../ground/schema/field.ts'
import { objectName } from '../../ground/schema/strings.ts'

const labelKey = text({
  min: 1,
  max: 317,
  pattern:
    '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$',
  expects: 'a name of at most 63 characters, with an optional DNS name and a slash in front',
})

const labelValue = text({
  max: 63,
  pattern: '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$',
  expects: 'empty, or letters, digits, -, _ and . between letters or digits',
})

const timestamp = text({ max: 64 })

const ownerReference = object('OwnerReference', {
  apiVersion: required(text(), 'Version of the owner.'),
  kind: required(text(), 'Kind of the owner.'),
  name: required(text(), 'Name of the owner.'),
  uid: required(text(), 'Identity of the owner.'),
  controller: optional(boolean(), 'Is it the managing controller?'),
  blockOwnerDeletion: optional(boolean(), 'Does it wait for this object?'),
})

export const objectMeta = object('ObjectMeta', {
  name: required(objectName, 'Name; unique for its kind in the namespace.'),
  generateName: optional(text(), 'Prefix of a generated name.'),
  namespace: optional(text(), 'Namespace; default if not set.'),
  labels: optional(map(labelValue, { keys: labelKey }), 'Labels.'),
  annotations: optional(map(text(), { keys: labelKey }), 'Annotations.'),
  uid: optional(text(), 'Identity, set by the API server.'),
  resourceVersion: optional(text(), 'Version, set by the API server.'),
  generation: optional(
    integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    'Number of the spec, set by the API server.',
  ),
  creationTimestamp: optional(timestamp, 'When it was created (RFC 3339).'),
  deletionTimestamp: optional(timestamp, 'When it was deleted (RFC 3339).'),
  deletionGracePeriodSeconds: optional(
    integer({ max: Number.MAX_SAFE_INTEGER }),
    'Time until it is gone.',
  ),
  finalizers: optional(list(text()), 'What must happen before it is deleted.'),
  ownerReferences: optional(list(ownerReference), 'Objects that it belongs to.'),
  managedFields: optional(list(json()), 'Who set which field.'),
  selfLink: optional(text(), 'Not used any more.'),
})

type WrittenMeta = Infer<typeof objectMeta>

/** Metadata after validation. The namespace is always set; for cluster-scoped objects it is ''. */
export type ObjectMeta = Omit<WrittenMeta, 'namespace' | 'managedFields' | 'selfLink'> & {
  readonly namespace: string
}
