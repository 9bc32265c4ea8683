/**
 * Answers in the memory of a process. Its workers share them: each keeps its own list of the same shared bytes, and
 * is notified of answers that others store.
 */
import { BroadcastChannel } from 'node:worker_threads'

/** An answer as a client got it. */
export interface StoredAnswer {
  /** Identifies the request, its owner and the configuration. */
  readonly key: string
  readonly contentType: string
  readonly body: Uint8Array
  /** The model that has answered, if it is known. */
  readonly model: string | undefined
  /** What the answer has cost, in 10⁻¹² USD; undefined if that is not known. */
  readonly cost: bigint | undefined
  /** In milliseconds since the epoch. */
  readonly storedAt: number
  /** In milliseconds since the epoch. */
  readonly expiresAt: number
  /** Cosine similarity to the request of the answer; omitted if the requests are equal. Not stored. */
  readonly similarity?: number
}

/** Where answers are kept. */
export interface AnswerStore {
  /** Returns an answer that has not expired. Never fails: an answer that cannot be read is treated as missing. */
  find(key: string): StoredAnswer | undefined | Promise<StoredAnswer | undefined>
  /** Stores an answer if there is room. */
  store(answer: StoredAnswer): void
}

/** Estimated bytes of memory that an answer takes in addition to its body. */
const overhead = 512
/** Maximum share of the memory that one answer may take. */
const maxPart = 1 / 16

const channelName = 'sluice answers'

/** Whether an answer may be served. Answers of the future, after a clock was set back, are not. */
export const isFresh = ({ storedAt, expiresAt }: StoredAnswer, now: number): boolean =>
  storedAt <= now && now < expiresAt

export class AnswerMemory implements AnswerStore {
  /** In the order in which they were stored, so that all workers drop the same ones first. */
  readonly #answers = new Map<string, StoredAnswer>()
  readonly #maxBytes: number
  #bytes = 0
  #channel: BroadcastChannel | undefined

  /** `maxBytes` bounds the answers of all workers together. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Largest body that is kept, in bytes. */
  get maxBody(): number {
    return Math.floor(this.#maxBytes * maxPart)
  }

  /** Starts to receive the answers that other workers store. Idempotent. */
  open(): void {
    if (this.#channel !== undefined) return
    const channel = new BroadcastChannel(channelName)
    channel.onmessage = (event) => this.#keep((event as { readonly data: StoredAnswer }).data)
    // Does not keep the thread alive.
    channel.unref()
    this.#channel = channel
  }

  find(key: string): StoredAnswer | undefined {
    const found = this.#answers.get(key)
    if (found === undefined || isFresh(found, Date.now())) return found
    this.#remove(found)
    return undefined
  }

  store(answer: StoredAnswer): void {
    if (answer.body.length > this.maxBody) return
    const body = new Uint8Array(new SharedArrayBuffer(answer.body.length))
    body.set(answer.body)
    const shared = { ...answer, body }
    this.#keep(shared)
    this.#channel?.postMessage(shared)
  }

  #keep(answer: StoredAnswer): void {
    const before = this.#answers.get(answer.key)
    if (before !== undefined) this.#remove(before)
    this.#answers.set(answer.key, answer)
    this.#bytes += sizeOf(answer)
    for (const oldest of this.#answers.values()) {
      if (this.#bytes <= this.#maxBytes) return
      this.#remove(oldest)
    }
  }

  #remove(answer: StoredAnswer): void {
    this.#answers.delete(answer.key)
    this.#bytes -= sizeOf(answer)
  }
}

const sizeOf = ({ body }: StoredAnswer): number => body.length + overhead
