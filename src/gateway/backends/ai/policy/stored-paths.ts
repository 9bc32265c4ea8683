/** Paths of what vendors store for later requests. */
import {
  type CollectionName,
  type StoredType,
  storedCollections,
} from '../../../../engines/messages/stored/collections.ts'
import type { StoredKind } from '../../../../engines/messages/stored/stored-ids.ts'

/** A request for something stored, or one that stores something. */
export interface StoredPath {
  readonly collection: StoredType
  readonly kind: StoredKind
  /** The id as the client has it; undefined for the collection itself. */
  readonly id?: string
  /** What of it is meant; undefined for all of it. */
  readonly part?: string
  /** The id of an item of a conversation. */
  readonly item?: string
  readonly methods: readonly string[]
  readonly errors: 'openai' | 'anthropic'
}

/** Longest first, because the name of a collection may end with that of another one. */
const names = (Object.keys(storedCollections) as CollectionName[]).sort(
  (a, b) => b.length - a.length,
)
const collectionAt = (path: string | undefined): CollectionName | undefined =>
  path === undefined ? undefined : names.find((name) => path.endsWith(`/${name}`))

/** What may follow an id. */
const parts = Object.values(storedCollections)
  .flatMap(({ methods }) => Object.keys(methods))
  .flatMap((rest) => rest.split('/').filter((part) => part !== '' && part !== ':'))

/** Only the documented parts: a route may lead to `/files/v1/chat/completions`. */
const form = new RegExp(
  `^(.*/(?:${names.join('|')}))(?:/([\\w-]+)(?:/(${[...new Set(parts)].join('|')})(?:/([\\w-]+))?)?)?$`,
)
/** Other requests below `/responses`, which are no ids. */
const named: ReadonlySet<string> = new Set(['compact', 'input_tokens'])

/** Returns the path of the collection that a plain path leads into, and its type; undefined for other paths. */
export function collectionOf(
  plain: string,
): { readonly path: string; readonly type: StoredType } | undefined {
  const [, path, id] = form.exec(plain) ?? []
  const name = collectionAt(path)
  if (path === undefined || name === undefined || named.has(id ?? '')) return undefined
  const collection = storedCollections[name]
  if (id === undefined && !('' in collection.methods)) return undefined
  return { path, type: collection.type }
}

/**
 * Returns what a path names, whose ids are taken as they are; undefined if it is not written like the documented ones.
 */
export function storedPathOf(path: string): StoredPath | undefined {
  const [, above, id, part, item] = form.exec(path) ?? []
  const name = collectionAt(above)
  if (name === undefined) return undefined
  const { type, kind, errors, methods: known } = storedCollections[name]
  const rest = [id && ':', part, item && ':'].filter((one) => one !== undefined).join('/')
  const methods = (known as Readonly<Record<string, readonly string[]>>)[rest]
  if (methods === undefined) return undefined
  return {
    ...{ collection: type, kind, methods, errors },
    ...(id !== undefined && { id }),
    ...(part !== undefined && { part }),
    ...(item !== undefined && { item }),
  }
}
