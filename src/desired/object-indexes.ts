import { type ObjectKey, objectKey } from '../model/names.ts'
import type { ObjectState } from './object-state.ts'

/** Defines an index: `keys` computes the keys of an object from the object alone. */
export interface IndexDefinition {
  readonly name: string
  readonly kinds: readonly string[]
  keys(state: ObjectState): readonly string[]
}

/** The objects that one index has under one key. */
interface Indexed {
  readonly members: Set<ObjectKey>
  /** Sorted when it is read; undefined once the members have changed. */
  sorted: readonly ObjectKey[] | undefined
}

/** The indexes over all objects. An entry is named `index name \0 key`. */
export class ObjectIndexes {
  readonly #definitions: readonly IndexDefinition[]
  readonly #byName = new Map<string, Indexed>()

  constructor(definitions: readonly IndexDefinition[]) {
    this.#definitions = definitions
  }

  /** The keys of the objects under an entry; sorted. */
  read(name: string): readonly ObjectKey[] {
    const indexed = this.#byName.get(name)
    if (indexed === undefined) return []
    indexed.sorted ??= [...indexed.members].sort()
    return indexed.sorted
  }

  /** Replaces the version `before` of an object. Returns the entries that contain either version. */
  replace(before: ObjectState | undefined, after: ObjectState | undefined): Iterable<string> {
    const ref = (after ?? before)?.ref
    const affected = new Set<string>()
    if (ref === undefined) return affected
    for (const { name, kinds, keys } of this.#definitions) {
      if (!kinds.includes(ref.kind)) continue
      const old = before === undefined ? [] : keys(before)
      const fresh = after === undefined ? [] : keys(after)
      for (const key of new Set([...old, ...fresh])) {
        const entry = `${name}\0${key}`
        affected.add(entry)
        this.#set(entry, objectKey(ref), fresh.includes(key))
      }
    }
    return affected
  }

  #set(name: string, key: ObjectKey, isPresent: boolean): void {
    const indexed = this.#byName.get(name) ?? { members: new Set(), sorted: undefined }
    if (indexed.members.has(key) === isPresent) return
    indexed.sorted = undefined
    if (isPresent) indexed.members.add(key)
    else indexed.members.delete(key)
    if (indexed.members.size === 0) this.#byName.delete(name)
    else this.#byName.set(name, indexed)
  }
}
