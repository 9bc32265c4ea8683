import { PieceQueue } from '../../base/piece-queue.ts'
import { GatewayError } from '../../errors/index.ts'
import type { Body, BodyTransform, BufferedBody } from '../../exchange/exchange.ts'
import { BodyCopy, type BodyWaiter, boundedBody, copyOf } from '../bytes/body-copy.ts'
import type { BodySink, BodySource, BodyTap } from '../bytes/body-sink.ts'
import { type ChunkSink, ChunkState, type HeadReader } from './head-reader.ts'
import { ReplayRecord } from './replay-record.ts'

/**
 * How a body is framed where it comes from (RFC 9112 6.3); `stream`: by HTTP/2, which says when it
 * ends, and perhaps its length beforehand.
 */
export type BodyKind = 'none' | 'length' | 'chunked' | 'close' | 'stream'

const emptyBody: BufferedBody = { complete: true, bytes: new Uint8Array() }

type Mode = 'waiting' | 'buffering' | 'flowing' | 'discarding'

/**
 * The body of one message between the connection it comes from and the one it goes to: read
 * strictly (bytes given to `feed` are overwritten after the call), held until it is wanted,
 * transformed if asked, and written in framing of our own.
 *
 * The connection that feeds it looks at `ended` (the source is complete) and `sent` (everything
 * has been written) afterwards; this class calls back nothing but `resumeBody`.
 */
export class MessageBody implements Body, ChunkSink {
  readonly #reader: HeadReader
  readonly #source: BodySource
  readonly #chunks = new ChunkState()
  #kind: BodyKind = 'none'
  #length = 0
  #remaining = 0
  #mode: Mode = 'waiting'
  #sink: BodySink | undefined
  #isChunkedOut = false
  readonly #held = new PieceQueue()
  readonly #record = new ReplayRecord()
  #transforms: BodyTransform[] | undefined
  #replacement: Buffer | undefined
  #waiter: BodyWaiter | undefined
  #known: BufferedBody | undefined
  #copy: BodyCopy | undefined
  #hasFlowed = false
  #hasFailed = false
  /** Counts messages. */
  #generation = 0
  tap: BodyTap | undefined
  /** Trailer fields are sent on; they can only be when the body is chunked. */
  passesTrailers = true
  /** Nothing more comes from the source. */
  ended = true
  /** Everything has been handed to the sink. */
  sent = false
  /** The sink is slow: feed no more until `drained`. */
  blocked = false
  /** Payload bytes received and sent, without chunk framing. */
  receivedBytes = 0
  sentBytes = 0

  constructor(reader: HeadReader, source: BodySource) {
    this.#reader = reader
    this.#source = source
  }

  /** A message begins. `length` counts for the kinds `length` and `stream`; negative where unknown. */
  start(kind: BodyKind, length: number, isReplayable: boolean): void {
    this.#generation++
    this.#kind = kind
    this.#length = kind === 'none' ? 0 : length
    this.#remaining = length
    this.#mode = 'waiting'
    this.#sink = undefined
    this.ended = kind === 'none' || (kind === 'length' && length === 0)
    this.sent = false
    this.blocked = false
    this.receivedBytes = 0
    this.sentBytes = 0
    this.#hasFlowed = false
    this.#hasFailed = false
    this.#held.take()
    this.#record.start(isReplayable && !this.ended)
    this.#transforms = undefined
    this.#replacement = undefined
    this.#waiter = undefined
    this.#known = undefined
    this.#copy = undefined
    this.tap = undefined
    this.passesTrailers = true
    this.#chunks.trailers = ''
    if (kind === 'chunked') this.#reader.startChunks(this.#chunks)
  }

  get length(): number | undefined {
    if (this.#replacement !== undefined) return this.#replacement.length
    return this.isLengthKnown ? this.#length : undefined
  }

  /** The head tells how long the body is. */
  get isLengthKnown(): boolean {
    if (this.#kind === 'stream') return this.#length >= 0
    return this.#kind === 'length' || this.#kind === 'none'
  }

  get trailers(): string {
    return this.#chunks.trailers
  }

  get kind(): BodyKind {
    return this.#kind
  }

  /** Bytes of the source that are still to come, if that is known. */
  get remaining(): number | undefined {
    if (this.ended) return 0
    return this.#kind === 'length' ? this.#remaining : undefined
  }

  get wantsBytes(): boolean {
    return !this.ended && !this.blocked && this.#mode !== 'waiting'
  }

  /** The body is sound and can be sent from its beginning (again). */
  get isReplayable(): boolean {
    if (this.#hasFailed) return false
    if (!this.#hasFlowed || this.#kind === 'none' || this.#replacement !== undefined) return true
    if (this.#transforms !== undefined) return false
    return this.#length === 0 || this.#record.isWhole || this.#known?.complete === true
  }

  /** The framing the body needs when sent: as it came, of a known other length, or unknown. */
  get framing(): 'as-is' | 'chunked' | { readonly length: number } {
    if (this.#transforms !== undefined) return 'chunked'
    if (this.#replacement !== undefined) return { length: this.#replacement.length }
    return 'as-is'
  }

  get known(): BufferedBody | undefined {
    if (this.#known !== undefined) return this.#known
    if (this.ended && this.receivedBytes === 0 && !this.#hasFailed) return emptyBody
    return this.ended ? this.#copy?.content(!this.#hasFailed) : undefined
  }

  record(maxBytes: number): void {
    if (this.#known === undefined && !this.ended) this.#copy ??= new BodyCopy(maxBytes)
  }

  /** What it was replaced by is what there is. */
  buffer(maxBytes: number): Promise<BufferedBody> {
    const known = this.#known
    if (known?.complete && this.#replacement !== undefined) return Promise.resolve(known)
    return new Promise((resolve, reject) => {
      if (this.#mode === 'flowing' || this.#waiter !== undefined) {
        reject(new GatewayError('bug', 'the body is already being read'))
        return
      }
      this.#waiter = { limit: maxBytes, resolve, reject }
      this.#mode = 'buffering'
      this.#settle()
      if (this.wantsBytes) this.#source.resumeBody()
    })
  }

  replace(bytes: Uint8Array): void {
    this.#replacement = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#known = { complete: true, bytes: this.#replacement }
  }

  through(transform: BodyTransform): void {
    this.#transforms ??= []
    this.#transforms.push(transform)
  }

  /**
   * Sends what is there and from now on what comes; the head must already be in the sink.
   * `flushLater`: more of the body is at hand, and the caller flushes after it.
   */
  flow(sink: BodySink, isChunked: boolean, flushLater: boolean): void {
    this.#sink = sink
    this.#isChunkedOut = isChunked
    this.#hasFlowed = true
    this.#mode = 'flowing'
    if (this.#replacement !== undefined) {
      const whole = this.#replacement
      this.#push(0, this.#transforms === undefined ? whole : copyOf(whole, 0, whole.length))
      if (!this.ended) this.#mode = 'discarding'
      this.#endFrom(0)
    } else {
      for (const piece of this.#held.take()) this.#send(piece, 0, piece.length)
      this.#endOver()
    }
    const generation = this.#generation
    if (this.wantsBytes) this.#source.resumeBody()
    // The source may have ended the message, and another one may have begun.
    if (generation === this.#generation && (this.sent || !flushLater)) this.blocked = !sink.flush()
  }

  /** Reads the rest and forgets it. */
  discard(): void {
    this.#mode = 'discarding'
    this.#sink = undefined
    this.blocked = false
    if (!this.ended) this.#source.resumeBody()
  }

  /** From now on the body cannot be sent again. */
  stopRecording(): void {
    this.#record.stop()
  }

  /** Back to before `flow`; the body must be replayable. */
  rewind(): void {
    if (this.#hasFlowed) {
      this.#held.putBack(this.#record.isWhole ? this.#record.take() : this.#copyOfKnown())
    }
    this.#mode = 'waiting'
    this.#sink = undefined
    this.sent = false
    this.blocked = false
    this.sentBytes = 0
    if (this.#hasFlowed) {
      this.tap?.onAbandon()
      this.tap = undefined
    }
  }

  /** What was read into memory, for sending it again. */
  #copyOfKnown(): Buffer[] {
    const known = this.#known
    return known?.complete === true ? [Buffer.from(known.bytes)] : []
  }

  /** The sink has room again. */
  drained(): void {
    if (!this.blocked) return
    this.blocked = false
    if (this.wantsBytes) this.#source.resumeBody()
  }

  /**
   * Takes the body's part of the bytes. Returns the offset after it, or a refusal of the core
   * (negative): the body is malformed. `isLast` counts for the kind `stream`: nothing follows.
   */
  feed(bytes: Buffer, start: number, end: number, isLast = false): number {
    let next = end
    if (this.#kind === 'chunked' && !this.#passOn(bytes, start, end)) {
      next = this.#reader.readChunks(this.#chunks, bytes, start, end, this)
      if (next < 0) return next
      if (this.#chunks.ended) this.ended = true
    } else if (this.#kind === 'length') {
      next = Math.min(end, start + this.#remaining)
      this.#remaining -= next - start
      this.onData(bytes, start, next)
      if (this.#remaining === 0) this.ended = true
    } else if (this.#kind !== 'chunked') {
      this.onData(bytes, start, end)
      if (isLast && this.#kind === 'stream') this.ended = true
    }
    this.#afterFeed()
    return next
  }

  /**
   * The source has ended where that ends the body; false if it cuts it. `trailers`: the field
   * lines that came behind it.
   */
  finish(trailers = ''): boolean {
    if (this.ended) return true
    if (this.#kind !== 'close' && this.#kind !== 'stream') return false
    this.#chunks.trailers = trailers
    this.ended = true
    this.#afterFeed()
    return true
  }

  /** The source is gone: rejects reads of the body. */
  fail(error: GatewayError): void {
    this.#waiter?.reject(error)
    this.#waiter = undefined
    this.#mode = 'waiting'
    this.#hasFailed = true
    this.ended = true
  }

  /** The source broke off. True if a transform has brought the body to its end nevertheless. */
  conclude(): boolean {
    const at = this.#transforms?.findIndex(({ fail }) => fail !== undefined) ?? -1
    if (at < 0 || this.sent || this.#sink === undefined) return false
    this.ended = true
    this.#hasFailed = true
    this.#transforms?.[at]?.fail?.((out) => this.#push(at + 1, out))
    this.#endFrom(at + 1)
    this.#sink.flush()
    return true
  }

  onData(bytes: Buffer, start: number, end: number): void {
    this.receivedBytes += end - start
    this.#copy?.add(bytes, start, end)
    if (this.#mode === 'flowing') this.#send(bytes, start, end)
    else if (this.#mode !== 'discarding') this.#held.push(bytes, start, end)
  }

  /** A chunk that came by itself and is sent as it came, as events of a stream do: as it is framed. */
  #passOn(bytes: Buffer, start: number, end: number): boolean {
    const sink = this.#isChunkedOut && this.#mode === 'flowing' ? this.#sink : undefined
    if (sink === undefined || this.#transforms || this.#record.isWhole) return false
    const from = this.#reader.wholeChunk(this.#chunks, bytes, start, end)
    if (from < 0) return false
    this.receivedBytes += end - 2 - from
    this.sentBytes += end - 2 - from
    this.#copy?.add(bytes, from, end - 2)
    sink.appendBytes(bytes, start, end)
    this.tap?.onSent(bytes, from, end - 2)
    return true
  }

  #afterFeed(): void {
    if (this.#mode === 'flowing') {
      this.#endOver()
      if (this.#sink !== undefined) this.blocked = !this.#sink.flush()
    } else if (this.#mode === 'buffering') this.#settle()
  }

  /** Resolves a read of the whole body once it is complete or too large. */
  #settle(): void {
    const waiter = this.#waiter
    if (waiter === undefined) return
    const isOver = this.#held.size > waiter.limit
    if (!isOver && !this.ended) return
    this.#waiter = undefined
    this.#mode = 'waiting'
    const all = this.#held.takeWhole()
    this.#held.putBack([all])
    this.#known = boundedBody(all, isOver ? waiter.limit : undefined)
    waiter.resolve(this.#known)
  }

  #send(bytes: Buffer, start: number, end: number): void {
    // A transform may hold bytes back, so they must be its own. What is transformed is not sent again.
    if (this.#transforms !== undefined) {
      this.#push(0, copyOf(bytes, start, end))
      return
    }
    this.#write(bytes, start, end, this.#record)
  }

  #push(index: number, bytes: Uint8Array): void {
    const transform = this.#transforms?.[index]
    if (transform === undefined) {
      const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      this.#write(all, 0, all.length, undefined)
    } else transform.push(bytes, (out) => this.#push(index + 1, out))
  }

  /** Ends the body if its source has ended, or if a transform lets nothing more through. */
  #endOver(): void {
    const at = this.ended ? -1 : (this.#transforms?.findIndex(({ isOver }) => isOver) ?? -1)
    if (!this.ended && at < 0) return
    this.#endFrom(at + 1)
    if (!this.ended) this.#mode = 'discarding'
  }

  /** The body is complete, and told so to the transforms from one on. */
  #endFrom(first: number): void {
    for (let index = first; index < (this.#transforms?.length ?? 0); index++) {
      this.#transforms?.[index]?.end((out) => this.#push(index + 1, out))
    }
    const trailers = this.passesTrailers ? this.#chunks.trailers : ''
    if (this.#isChunkedOut) this.#sink?.appendText(`0\r\n${trailers}\r\n`)
    this.#sink?.endBody(trailers)
    this.tap?.onSentEnd()
    this.sent = true
  }

  /** `record`: where these bytes are as they came. */
  #write(bytes: Buffer, start: number, end: number, record: ReplayRecord | undefined): void {
    const length = end - start
    const sink = this.#sink
    if (length === 0 || sink === undefined) return
    this.sentBytes += length
    if (this.#isChunkedOut) sink.appendText(`${length.toString(16)}\r\n`)
    if (record === undefined) sink.appendBytes(bytes, start, end)
    else record.send(sink, bytes, start, end)
    if (this.#isChunkedOut) sink.appendText('\r\n')
    this.tap?.onSent(bytes, start, end)
  }
}
