/** Questions of workers to a store of sealed answers. Only the main thread is connected to the store. */

/** Part of the names of stored answers. Changed if older answers must not be read. */
export const answerFormat = '1'

/** A store of sealed answers. All methods reject if it cannot be reached. */
export interface AnswerValues {
  get(name: string): Promise<string | undefined>
  /** Resolves to false if the store does not take values of this size. */
  put(name: string, value: string): Promise<boolean>
  close(): Promise<void>
}

export interface AnswerQuestion {
  readonly type: 'answer'
  readonly id: number
  readonly name: string
  /** The value to store; not set for a lookup. */
  readonly put?: string
}

export interface AnswerReply {
  readonly type: 'answer'
  readonly id: number
  readonly value?: string | undefined
  /** Whether the value was stored. */
  readonly isStored?: boolean
  /** Why the store did not answer. */
  readonly problem?: string
}
