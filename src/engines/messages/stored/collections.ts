/** The collections of what vendors store for later requests, by their names in paths. */
import type { StoredKind } from './stored-ids.ts'

export interface Collection {
  /** The type of its requests, in `routes`. */
  readonly type: string
  readonly kind: StoredKind
  /** The form of errors, which says whose API it is. */
  readonly errors: 'openai' | 'anthropic'
  /** Methods by what follows the collection in the path; `:` stands for an id. */
  readonly methods: Readonly<Record<string, readonly string[]>>
}

export const storedCollections = {
  responses: {
    type: 'Responses',
    kind: 'response',
    errors: 'openai',
    // Requests for responses are chats, which store something beside.
    methods: { ':': ['GET', 'DELETE'], ':/cancel': ['POST'], ':/input_items': ['GET'] },
  },
  conversations: {
    type: 'Conversations',
    kind: 'conversation',
    errors: 'openai',
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
    errors: 'openai',
    methods: { '': ['POST'], ':': ['GET', 'DELETE'], ':/content': ['GET'] },
  },
  batches: {
    type: 'Batches',
    kind: 'batch',
    errors: 'openai',
    methods: { '': ['POST'], ':': ['GET'], ':/cancel': ['POST'] },
  },
  'messages/batches': {
    type: 'MessageBatches',
    kind: 'message-batch',
    errors: 'anthropic',
    methods: {
      '': ['POST'],
      ':': ['GET', 'DELETE'],
      ':/cancel': ['POST'],
      ':/results': ['GET'],
    },
  },
} as const satisfies Readonly<Record<string, Collection>>

export type CollectionName = keyof typeof storedCollections
/** The types of paths below which something is stored. */
export type StoredType = (typeof storedCollections)[CollectionName]['type']

/** Collections with paths of their own, beside those of the things in them. */
export type OwnCollection = Exclude<CollectionName, 'responses'>
export const ownCollections = (Object.keys(storedCollections) as CollectionName[]).filter(
  (name): name is OwnCollection => '' in storedCollections[name].methods,
)
