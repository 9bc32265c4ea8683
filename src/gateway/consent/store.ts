/** The store of grants as a worker sees it: the main thread has the connection, and answers questions. */
import { GatewayError } from '../../ground/errors/index.ts'
import type {
  GrantAnswer,
  GrantEntry,
  GrantQuestion,
  GrantRecord,
  StoredGrant,
} from '../../ground/model/grants.ts'

/** How long a worker waits for an answer. */
const timeoutMs = 6_000
/** Maximum number of questions that wait for an answer. */
const maxQuestions = 1_024

let send: (question: GrantQuestion) => void = ({ id }) =>
  receiveGrant({ type: 'grant', id, problem: 'this process has no grant store' })
const waiting = new Map<number, (answer: GrantAnswer) => void>()
let last = 0

/** Sets who answers the questions of this worker. */
export function askGrantsAt(ask: (question: GrantQuestion) => void): void {
  send = ask
}

export function receiveGrant(answer: GrantAnswer): void {
  waiting.get(answer.id)?.(answer)
}

function ask(question: Omit<GrantQuestion, 'type' | 'id'>): Promise<GrantAnswer> {
  if (waiting.size >= maxQuestions) throw unavailable('too many requests are waiting')
  const id = ++last
  const { promise, resolve } = Promise.withResolvers<GrantAnswer>()
  const timer = setTimeout(
    () => receiveGrant({ type: 'grant', id, problem: 'it does not respond' }),
    timeoutMs,
  )
  waiting.set(id, (answer) => {
    clearTimeout(timer)
    waiting.delete(id)
    resolve(answer)
  })
  send({ type: 'grant', id, ...question })
  return promise.then((answer) => {
    if (answer.problem !== undefined) throw unavailable(answer.problem)
    return answer
  })
}

const unavailable = (why: string): GatewayError =>
  new GatewayError('credentials_unavailable', `grant store: ${why}`)

/** Rejects with a GatewayError if the store cannot be reached, as `putGrant` does. */
export const getGrant = async (key: string): Promise<StoredGrant> =>
  (await ask({ key })).found ?? { record: undefined, version: 0 }

/** Resolves to the new version; undefined if another writer was faster. */
export const putGrant = async (
  key: string,
  record: GrantRecord | undefined,
  expected: number,
): Promise<number | undefined> => (await ask({ key, put: { record, expected } })).version

/** Lists some of the removed grants whose tokens must be revoked at their service. */
export const listRevoking = async (): Promise<readonly GrantEntry[]> =>
  (await ask({ key: '', revoking: true })).entries ?? []

/** Removes an entry that is not a grant. */
export async function removeEntry(key: string): Promise<void> {
  await ask({ key, remove: true })
}

/** The store, for functions that commands use, too. */
export const workerStore = { get: getGrant, put: putGrant } as const
