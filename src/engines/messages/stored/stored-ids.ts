/** Ids of what providers store for later requests. Clients get them sealed, so that only their owner can use them. */
import { LlmError } from '../llm-error.ts'

/** What an id refers to. */
export type StoredKind =
  | 'response'
  | 'conversation'
  | 'item'
  | 'file'
  | 'batch'
  | 'message-batch'
  | 'container'
  | 'audio'

/** Opens the ids in the request of a client. */
export interface IdOpener {
  /**
   * Returns the id of the provider for one that the request cannot do without; the request can then go to this
   * provider only. `param` is where the id is. @throws StoredNotFoundError if the client does not own it
   */
  need(kind: StoredKind, id: string, param: string): string
  /** Returns the id of the chosen provider; undefined if the client does not own it, or if another provider stores it. */
  find(kind: StoredKind, id: string): string | undefined
}

/** Seals an id of the provider for the client. The same id is always sealed to the same text. */
export type SealId = (kind: StoredKind, id: string) => string

const nouns: Readonly<Record<StoredKind, string>> = {
  response: 'response',
  conversation: 'conversation',
  item: 'item',
  file: 'file',
  batch: 'batch',
  container: 'container',
  audio: 'audio',
  'message-batch': 'batch',
}

/** Maximum number of characters of an id that an error repeats. */
const maxShown = 80

/** The client has named something that does not exist, or that belongs to another client: nothing shows which. */
export class StoredNotFoundError extends LlmError {
  constructor(kind: StoredKind, id: string, param?: string) {
    const where = param === undefined ? '' : `${param}: `
    super(404, `${where}no ${nouns[kind]} found with id '${id.slice(0, maxShown)}'`)
    this.name = 'StoredNotFoundError'
  }
}
