/** Questions of workers to a store of sealed answers. Only the main thread is connected to the store. */

/** Part of the names of stored answers. Changed if older answers must not be read. */
export const answerFormat = '1'

/** A store of sealed answers. All methods reject if it cannot be reached. */
export interface AnswerValues {
  get(name: string): Promise<string | undefined>
  /** Resolves to false if the store does not take values of this size. The store may drop the value after `ttlMs`. */
  put(name: string, value: string, ttlMs: number): Promise<boolean>
  close(): Promise<void>
}

export interface AnswerQuestion {
  readonly type: 'answer'
  readonly id: number
  readonly name: string
  /** The value to store, and for how many milliseconds; not set for a lookup. */
  readonly put?: { readonly value: string; readonly ttlMs: number }
}

export interface AnswerReply {
  readonly type: 'answer'
  readonly id: number
  readonly value?: string | undefined
  /** Whether the value was stored; false if it is too large. */
  readonly isStored?: boolean
  /** Why the store did not answer. */
  readonly problem?: string
}
