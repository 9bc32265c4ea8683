import type { StoredAnswer } from './answer-memory.ts'

/** What the cache does for one request. */
export interface AnswerUse {
  /** `stored` if the new answer is kept. */
  result: 'hit' | 'miss' | 'stored' | 'bypass'
  /** Why the cache does not apply to the request, or does not store its answer. */
  detail: string | undefined
  /** The key of the new answer; undefined if it is not kept. */
  readonly key: string | undefined
  readonly ttlMs: number
  /** The answer that is served. */
  readonly hit: StoredAnswer | undefined
}
