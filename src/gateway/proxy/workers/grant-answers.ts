/** Answers the questions of workers to the store of grants, which only the main thread has open. */
import type {
  GrantAnswer,
  GrantEntry,
  GrantQuestion,
  GrantRecord,
  GrantStore,
} from '../../../ground/model/grants.ts'
import type { ProxyEvent } from './proxy-options.ts'

const none = 'this proxy has none; set --grant-store'

/** Maximum number of revocations that a worker gets at once. */
const maxRevoking = 64
/** Milliseconds for which a list of revocations is reused for other workers. */
const listedMs = 1_000
/** Interval at which old outcomes of revocations are removed. */
const cleaningMs = 3_600_000
/** How long the outcome of a revocation is kept. */
const outcomeMs = 30 * 24 * 3_600_000

export class GrantAnswers {
  readonly #store: GrantStore | undefined
  readonly #emit: (event: ProxyEvent) => void
  #listed: { readonly at: number; readonly entries: Promise<readonly GrantEntry[]> } | undefined
  #cleanedAt = Number.NEGATIVE_INFINITY

  constructor(store: GrantStore | undefined, emit: (event: ProxyEvent) => void) {
    this.#store = store
    this.#emit = emit
  }

  /** Never rejects: a store that fails is a problem of the answer. */
  async answer(question: GrantQuestion): Promise<GrantAnswer> {
    const { id } = question
    if (this.#store === undefined) return { type: 'grant', id, problem: none }
    try {
      return { type: 'grant', id, ...(await this.#ask(this.#store, question)) }
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      return { type: 'grant', id, problem }
    }
  }

  async #ask(
    store: GrantStore,
    { key, put, remove, revoking }: GrantQuestion,
  ): Promise<Pick<GrantAnswer, 'found' | 'version' | 'entries'>> {
    if (revoking === true) return { entries: await this.#revoking(store) }
    if (remove === true) {
      await store.remove(key)
      return {}
    }
    if (put === undefined) return { found: await store.get(key) }
    const version = await store.put(key, put.record, put.expected)
    if (version !== undefined) this.#report(put.record)
    return { version }
  }

  async #revoking(store: GrantStore): Promise<readonly GrantEntry[]> {
    const now = performance.now()
    if (this.#listed === undefined || now > this.#listed.at + listedMs) {
      this.#listed = { at: now, entries: store.list('revoking', maxRevoking) }
      // Awaited first: a rejection that nothing has seen would end the process.
      await this.#listed.entries
      if (now > this.#cleanedAt + cleaningMs) {
        this.#cleanedAt = now
        await removeOutcomes(store, Date.now() - outcomeMs)
      }
    }
    return this.#listed.entries
  }

  #report(record: GrantRecord | undefined): void {
    const { outcome, problem = '' } = record?.revocation ?? {}
    if (record === undefined || outcome !== 'failed') return
    this.#emit({ type: 'grant-not-revoked', service: record.service, problem })
  }
}

async function removeOutcomes(store: GrantStore, before: number): Promise<void> {
  for (const [key, { record }] of await store.list('revoked')) {
    if ((record?.revocation?.at ?? 0) < before) await store.remove(key)
  }
}
