import type { ObjectKey } from '../../ground/model/names.ts'
import type { ObjectState } from './object-state.ts'

/** Defines an index: `keys` computes the keys of an object from the object alone. */
export interface IndexDefinition {
  readonly name: string
  readonly kinds: readonly string[]
  keys(state: ObjectState): readonly string[]
}

const none: readonly never[] = []

/** The objects that one index has under one key. */
interface Indexed {
  readonly members: Set<ObjectKey>
  /** Sorted when it is read; undefined once the members have changed. */
  sorted: readonly ObjectKey[] | undefined
}

/** The indexes over all objects. An entry is named `index name \0 key`. */
export class ObjectIndexes {
  /** The indexes of each kind. */
  readonly #byKind = new Map<string, readonly IndexDefinition[]>()
  readonly #byName = new Map<string, Indexed>()

  constructor(definitions: readonly IndexDefinition[]) {
    for (const kind of new Set(definitions.flatMap(({ kinds }) => kinds))) {
      this.#byKind.set(
        kind,
        definitions.filter(({ kinds }) => kinds.includes(kind)),
      )
    }
  }

  /** The keys of the objects under an entry; sorted. */
  read(name: string): readonly ObjectKey[] {
    const indexed = this.#byName.get(name)
    if (indexed === undefined) return []
    indexed.sorted ??= [...indexed.members].sort()
    return indexed.sorted
  }

  /** Replaces the version `before` of an object. Returns the entries that contain either version. */
  replace(
    object: ObjectKey,
    before: ObjectState | undefined,
    after: ObjectState | undefined,
  ): Iterable<string> {
    const definitions = this.#byKind.get((after ?? before)?.ref.kind ?? '')
    if (definitions === undefined) return none
    const affected: string[] = []
    for (const { name, keys } of definitions) {
      const old = before === undefined ? none : keys(before)
      const fresh = after === undefined ? none : keys(after)
      for (const key of fresh) affected.push(this.#enter(name, key, object, old))
      for (const key of old) if (!fresh.includes(key)) affected.push(this.#leave(name, key, object))
    }
    return affected
  }

  /** Adds an object to an entry, unless it was there before. Returns the name of the entry. */
  #enter(name: string, key: string, object: ObjectKey, old: readonly string[]): string {
    const entry = `${name}\0${key}`
    if (!old.includes(key)) this.#set(entry, object, true)
    return entry
  }

  #leave(name: string, key: string, object: ObjectKey): string {
    const entry = `${name}\0${key}`
    this.#set(entry, object, false)
    return entry
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
