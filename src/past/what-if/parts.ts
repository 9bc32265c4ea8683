/** Divides changed objects into parts that can take effect without each other. */
import { isObject } from '../../ground/base/json-object.ts'
import { type ObjectKey, parseObjectKey } from '../../ground/model/names.ts'

/** Versions of an object whose references count: the one in force, and the one that waits. */
type Versions = readonly unknown[]

/** Returns lists of objects. An object is in the same list as those that it refers to by name. */
export function independentParts(changed: ReadonlyMap<ObjectKey, Versions>): ObjectKey[][] {
  const named = Map.groupBy(changed.keys(), (key) => parseObjectKey(key).name)
  const parents = new Map<ObjectKey, ObjectKey>()
  const rootOf = (key: ObjectKey): ObjectKey => {
    let root = key
    for (let next = parents.get(root); next !== undefined; next = parents.get(root)) root = next
    if (root !== key) parents.set(key, root)
    return root
  }
  for (const [key, versions] of changed) {
    for (const reference of versions.flatMap((version) => [...referencesIn(version)])) {
      for (const other of named.get(reference.name) ?? []) {
        if (!isMeant(reference, parseObjectKey(key).namespace, other)) continue
        const [a, b] = [rootOf(key), rootOf(other)]
        if (a !== b) parents.set(a, b)
      }
    }
  }
  return [...Map.groupBy(changed.keys(), rootOf).values()]
}

interface Reference {
  readonly name: string
  readonly kind?: unknown
  readonly namespace?: unknown
}

/** Every member of a spec that has a name may refer to an object. */
function* referencesIn(value: unknown): Generator<Reference> {
  if (Array.isArray(value)) for (const item of value) yield* referencesIn(item)
  if (!isObject(value)) return
  const { name, kind, namespace } = value
  if (typeof name === 'string') yield { name, kind, namespace }
  for (const [field, member] of Object.entries(value)) {
    if (typeof member === 'object') yield* referencesIn(member)
    else if (typeof member === 'string' && field.endsWith('Name')) yield { name: member }
  }
}

function isMeant({ kind, namespace }: Reference, own: string, key: ObjectKey): boolean {
  const other = parseObjectKey(key)
  if (typeof kind === 'string' && kind !== other.kind) return false
  const isGlobal = other.namespace === ''
  return isGlobal || other.namespace === (typeof namespace === 'string' ? namespace : own)
}
