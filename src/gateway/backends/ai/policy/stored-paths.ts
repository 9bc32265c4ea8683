/** Paths of what vendors store for later requests, in the API of vendor A. */
import type { StoredKind } from '../../../../engines/messages/stored/stored-ids.ts'

/** The types of paths below which something is stored. */
type StoredType = 'Responses' | 'Conversations' | 'Files' | 'Batches'

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
  readonly errors: 'openai'
}

interface Collection {
  readonly type: StoredType
  readonly kind: StoredKind
  /** Methods by what follows the collection in the path; `:` stands for an id. */
  readonly methods: Readonly<Record<string, readonly string[]>>
}

const collections: Readonly<Record<string, Collection>> = {
  responses: {
    type: 'Responses',
    kind: 'response',
    methods: { ':': ['GET', 'DELETE'], ':/cancel': ['POST'], ':/input_items': ['GET'] },
  },
  conversations: {
    type: 'Conversations',
    kind: 'conversation',
    methods: {
      '': ['POST'],
      ':': ['GET', 'POST', 'DELETE'],
      ':/items': ['GET', 'POST'],
      ':/items/:': ['GET', 'DELETE'],
    },
  },
  files: {
    type: 'Files',
    kind: 'file',
    methods: { '': ['POST'], ':': ['GET', 'DELETE'], ':/content': ['GET'] },
  },
  batches: {
    type: 'Batches',
    kind: 'batch',
    methods: { '': ['POST'], ':': ['GET'], ':/cancel': ['POST'] },
  },
}

/** Only the documented parts: a route may lead to `/files/v1/chat/completions`. */
const form =
  /^(.*\/(responses|conversations|files|batches))(?:\/([\w-]+)(?:\/(cancel|content|input_items|items)(?:\/([\w-]+))?)?)?$/
/** Other requests below `/responses`, which are no ids. */
const named: ReadonlySet<string> = new Set(['compact', 'input_tokens'])

/** Returns the path of the collection that a plain path leads into, and its type; undefined for other paths. */
export function collectionOf(
  plain: string,
): { readonly path: string; readonly type: StoredType } | undefined {
  const [, path, name = '', id] = form.exec(plain) ?? []
  const collection = collections[name]
  if (path === undefined || collection === undefined || named.has(id ?? '')) return undefined
  // Requests for responses are chats, which store something beside.
  if (collection.kind === 'response' && id === undefined) return undefined
  return { path, type: collection.type }
}

/**
 * Returns what a path names, whose ids are taken as they are; undefined if it is not written like the documented ones.
 */
export function storedPathOf(path: string): StoredPath | undefined {
  const [, , name = '', id, part, item] = form.exec(path) ?? []
  const collection = collections[name]
  if (collection === undefined) return undefined
  const rest = [id && ':', part, item && ':'].filter((one) => one !== undefined).join('/')
  const methods = Object.hasOwn(collection.methods, rest) ? collection.methods[rest] : undefined
  if (methods === undefined) return undefined
  const { type, kind } = collection
  return {
    ...{ collection: type, kind, methods, errors: 'openai' },
    ...(id !== undefined && { id }),
    ...(part !== undefined && { part }),
    ...(item !== undefined && { item }),
  }
}
