/** Answers the questions of workers to the store of answers. Only the main thread is connected to the store. */
import type {
  AnswerQuestion,
  AnswerReply,
  AnswerValues,
} from '../../../ground/model/answer-values.ts'

interface Worker {
  send(reply: AnswerReply): void
}

/** Answers a question of a worker, which may have ended. */
export async function sendReply(
  worker: Worker | undefined,
  store: AnswerValues | undefined,
  question: AnswerQuestion,
): Promise<void> {
  worker?.send(await replyFrom(store, question))
}

/** Never rejects: if the store fails, `problem` of the reply says why. */
async function replyFrom(
  store: AnswerValues | undefined,
  { id, name, put }: AnswerQuestion,
): Promise<AnswerReply> {
  if (store === undefined)
    return { type: 'answer', id, problem: 'this proxy has no store of answers' }
  try {
    if (put === undefined) return { type: 'answer', id, value: await store.get(name) }
    return { type: 'answer', id, isStored: await store.put(name, put.value, put.ttlMs) }
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    return { type: 'answer', id, problem }
  }
}
