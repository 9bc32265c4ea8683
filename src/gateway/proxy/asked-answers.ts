/** The store of answers as a worker sees it, if the main thread has the connection (NATS). */
import type { AnswerQuestion, AnswerReply } from '../../ground/model/answer-values.ts'

/** How long a worker waits for a reply, and how many questions and bytes may wait. */
const timeoutMs = 600
const maxQuestions = 1_024
const maxWaitingBytes = 16 * 1024 * 1024
/** Length of the pauses after failures, during which nothing is asked. */
const firstPauseMs = 100
const maxPauseMs = 10_000

let send: ((question: AnswerQuestion) => void) | undefined
const waiting = new Map<number, (reply: AnswerReply) => void>()
let waitingBytes = 0
let last = 0
let pauseMs = firstPauseMs
let pausedUntil = 0

/** Sets the function that sends questions of this worker to the main thread. */
export function askAnswersAt(ask: (question: AnswerQuestion) => void): void {
  send = ask
}

export function receiveAnswer(reply: AnswerReply): void {
  waiting.get(reply.id)?.(reply)
}

/** Resolves to undefined if the store has failed, or is paused after a failure. */
function ask(question: Omit<AnswerQuestion, 'type' | 'id'>): Promise<AnswerReply | undefined> {
  const bytes = question.put?.value.length ?? 0
  const isFull = waiting.size >= maxQuestions || waitingBytes + bytes > maxWaitingBytes
  if (send === undefined || isFull || performance.now() < pausedUntil) {
    return Promise.resolve(undefined)
  }
  const id = ++last
  const { promise, resolve } = Promise.withResolvers<AnswerReply | undefined>()
  const timer = setTimeout(() => receiveAnswer({ type: 'answer', id, problem: 'late' }), timeoutMs)
  timer.unref()
  waitingBytes += bytes
  waiting.set(id, (reply) => {
    clearTimeout(timer)
    waiting.delete(id)
    waitingBytes -= bytes
    updatePause(reply.problem === undefined)
    resolve(reply.problem === undefined ? reply : undefined)
  })
  send({ type: 'answer', id, ...question })
  return promise
}

/** Ends or lengthens the pauses after the success or failure of a question. */
function updatePause(hasSucceeded: boolean): void {
  const now = performance.now()
  if (hasSucceeded) pauseMs = firstPauseMs
  else if (now >= pausedUntil) {
    pausedUntil = now + pauseMs
    pauseMs = Math.min(maxPauseMs, pauseMs * 2)
  }
}

/** The store with the methods of `SharedValues`. */
export const askedValues = {
  async get(name: string): Promise<string | null | undefined> {
    const reply = await ask({ name })
    return reply && (reply.value ?? null)
  },
  async set(name: string, value: string, ttlMs: number) {
    const reply = await ask({ name, put: { value, ttlMs } })
    if (reply === undefined) return 'failed' as const
    return reply.isStored === true ? ('stored' as const) : ('too_large' as const)
  },
}
