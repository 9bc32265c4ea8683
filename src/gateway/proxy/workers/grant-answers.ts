/** Answers the questions of workers to the store of grants, which only the main thread has open. */
import type { GrantAnswer, GrantQuestion, GrantStore } from '../../../ground/model/grants.ts'

const none = 'this proxy has none; set --grant-store'

/** Never rejects: a store that fails is a problem of the answer. */
export async function answerGrant(
  store: GrantStore | undefined,
  { id, key, put }: GrantQuestion,
): Promise<GrantAnswer> {
  if (store === undefined) return { type: 'grant', id, problem: none }
  try {
    return put === undefined
      ? { type: 'grant', id, found: await store.get(key) }
      : { type: 'grant', id, version: await store.put(key, put.record, put.expected) }
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    return { type: 'grant', id, problem }
  }
}
