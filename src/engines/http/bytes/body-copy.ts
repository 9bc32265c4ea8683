import { bufferOf } from '../../../ground/base/buffers.ts'
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { BodyWatcher, BufferedBody } from '../../../ground/exchange/exchange.ts'
import type { PieceQueue } from './piece-queue.ts'

export const emptyBody: BufferedBody = { complete: true, bytes: new Uint8Array() }

/** A read of a body into memory. It makes a promise only if the body has not arrived yet. */
export class BodyRead {
  readonly #limit: number
  readonly #watcher: BodyWatcher | undefined
  #isEnough = false
  /** Undefined until the body has been read. */
  body: BufferedBody | undefined
  #error: GatewayError | undefined
  #resolve: ((body: BufferedBody) => void) | undefined
  #reject: ((error: GatewayError) => void) | undefined

  /** With a watcher, the read ends as soon as the watcher says so. */
  constructor(limit: number, watcher?: BodyWatcher) {
    this.#limit = limit
    this.#watcher = watcher
  }

  /** True if only the beginning of the body is read, after which the body is still forwarded as it is. */
  get isOfBeginning(): boolean {
    return this.#watcher !== undefined
  }

  /** Shows bytes that have arrived to the watcher. */
  watch(bytes: Buffer, start: number, end: number): void {
    if (this.#watcher !== undefined && !this.#isEnough) {
      this.#isEnough = this.#watcher.watch(bytes, start, end)
    }
  }

  /** Shows bytes that arrived before the read began. */
  watchHeld(held: PieceQueue): void {
    if (this.#watcher === undefined || held.size === 0) return
    const all = held.joinAll()
    this.watch(all, 0, all.length)
  }

  /** Ends the read if the body is complete or too large, or enough of it has arrived. `held` is what has arrived. */
  finish(held: PieceQueue, isComplete: boolean): BufferedBody | undefined {
    const isOver = held.size > this.#limit
    if (!isOver && !isComplete && !this.#isEnough) return undefined
    const all = held.joinAll()
    const body: BufferedBody =
      isOver || !isComplete
        ? { complete: false, prefix: all.subarray(0, this.#limit) }
        : { complete: true, bytes: all }
    this.resolve(body)
    return body
  }

  /** Ends the read with a body that is known already. */
  resolveKnown(body: BufferedBody & { readonly complete: true }): void {
    this.watch(bufferOf(body.bytes), 0, body.bytes.length)
    this.resolve(body)
  }

  resolve(body: BufferedBody): void {
    this.body = body
    this.#resolve?.(body)
  }

  reject(error: GatewayError): void {
    this.#error = error
    this.#reject?.(error)
  }

  result(): BufferedBody | Promise<BufferedBody> {
    if (this.body !== undefined) return this.body
    if (this.#error !== undefined) return Promise.reject(this.#error)
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }
}

/** A copy of a body, up to a limit, made while the body passes and read when it has ended. */
export class BodyCopy {
  readonly #limit: number
  readonly #bytes = new GrowingBytes()
  #missed = false

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Starts a copy that begins with what is held. */
  static of(held: PieceQueue, limit: number): BodyCopy {
    const copy = new BodyCopy(limit)
    if (held.size === 0) return copy
    const begun = held.joinAll()
    copy.add(begun, 0, begun.length)
    return copy
  }

  add(bytes: Buffer, start: number, end: number): void {
    const upTo = Math.min(end, start + this.#limit - this.#bytes.length)
    if (upTo < end) this.#missed = true
    if (upTo > start) this.#bytes.add(bytes, start, upTo)
  }

  /** Returns the copy. `isWhole`: the body has ended. */
  content(isWhole: boolean): BufferedBody {
    const all = this.#bytes.content
    return isWhole && !this.#missed
      ? { complete: true, bytes: all }
      : { complete: false, prefix: all }
  }
}

/** Returns a copy of a body that was read into memory, to send it again. */
export function copyOfRead(known: BufferedBody | undefined): Buffer[] {
  return known?.complete === true ? [Buffer.from(known.bytes)] : []
}
