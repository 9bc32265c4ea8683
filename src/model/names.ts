/** A namespaced object's name. */
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

export function objectKey(ref: ObjectRef): ObjectKey {
  return `${ref.kind}/${ref.namespace}/${ref.name}`
}

export function parseObjectKey(key: ObjectKey): ObjectRef {
  const [kind = '', namespace = '', name = ''] = key.split('/')
  return { kind, namespace, name }
}

/**
 * How old an object is, for every tie that Gateway API settles by age: creation time first, then
 * (only for objects whose manifest gives no creation time) the order of first sight, then
 * `namespace/name`.
 */
export interface Age {
  /** Milliseconds since the epoch; first sight where the object has no creationTimestamp. */
  readonly created: number
  /** Position in the log of the first sight; 0 where the object has a creationTimestamp. */
  readonly order: number
}

/** Negative where `a` is older; a total order over distinct objects. */
export function compareAge(a: Age & ObjectName, b: Age & ObjectName): number {
  if (a.created !== b.created) return a.created - b.created
  if (a.order !== b.order) return a.order - b.order
  return compareText(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`)
}

/** Order by UTF-16 code units: the same on every machine, unlike localeCompare. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
