/** The namespace and name of an object. */
export interface ObjectName {
  readonly namespace: string
  readonly name: string
}

/** An object of any kind; `kind` is unique among the kinds that the pipeline reads. */
export interface ObjectRef extends ObjectName {
  readonly kind: string
}

/** `Kind/namespace/name`: the identity of an object in maps, logs and messages. */
export type ObjectKey = string

/**
 * Keys are stored in large numbers. `join` makes one string, while V8 keeps the result of a template as a tree
 * of its parts, which takes another 32 bytes even after the text was read.
 */
export function objectKey({ kind, namespace, name }: ObjectRef): ObjectKey {
  return [kind, namespace, name].join('/')
}

/** Writes `Kind namespace/name`, or `Kind name` for an object of the whole cluster. */
export function objectText({ kind, namespace, name }: ObjectRef): string {
  return namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
}

export function parseObjectKey(key: ObjectKey): ObjectRef {
  const [kind = '', namespace = '', name = ''] = key.split('/')
  return { kind, namespace, name }
}

/** The Gateway that a text of the form `namespace/name` refers to. */
export function gatewayRef(text: string): ObjectRef {
  return parseObjectKey(`Gateway/${text}`)
}

/**
 * The age of an object, which decides all ties that Gateway API resolves by age. Compared first by
 * creation time, then (only for objects without a creationTimestamp) by the order in which they were
 * first observed, then by `namespace/name`.
 */
export interface Age {
  /** Milliseconds since the epoch: the creationTimestamp, or when the object was first observed. */
  readonly created: number
  /** Log position at which the object was first observed; 0 if it has a creationTimestamp. */
  readonly order: number
}

/** Returns a negative number if `a` is older. Distinct objects never compare as equal. */
export function compareAge(a: Age & ObjectName, b: Age & ObjectName): number {
  if (a.created !== b.created) return a.created - b.created
  if (a.order !== b.order) return a.order - b.order
  return compareText(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`)
}

/** Compares by UTF-16 code units. Unlike localeCompare, the order is the same on every machine. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
