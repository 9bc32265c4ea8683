import { bufferOf, copyOf } from '../../../ground/base/buffers.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type {
  Body,
  BodyTransform,
  BodyWatcher,
  BufferedBody,
  OmittedBytes,
} from '../../../ground/exchange/exchange.ts'
import { BodyCopy, BodyRead, copyOfRead, emptyBody } from '../bytes/body-copy.ts'
import type { BodyKind } from '../bytes/body-kind.ts'
import type { BodySink, BodySource, BodyTap } from '../bytes/body-sink.ts'
import { PieceQueue } from '../bytes/piece-queue.ts'
import { copyLimit } from '../bytes/write-limits.ts'
import { canFail, isOver, lengthAfter, omittedBytes, rewrittenBytes } from './body-transforms.ts'
import { type ChunkSink, ChunkState, type HeadReader } from './head-reader.ts'
import { ReplayRecord } from './replay-record.ts'

type Mode = 'waiting' | 'buffering' | 'flowing' | 'discarding'

/**
 * The body of one message between two connections: read strictly (bytes passed to `feed` are overwritten
 * after the call), held until the receiver wants it, changed by transforms, and written with its framing.
 * The connection that feeds it looks at `ended` (the source is complete) and `sent` (everything has been
 * written) afterwards; the only method of it that this class calls is `resumeBody`.
 */
export class MessageBody implements Body, ChunkSink {
  readonly #reader: HeadReader
  readonly #source: BodySource
  readonly #chunks = new ChunkState()
  #length = 0
  #remaining = 0
  #mode: Mode = 'waiting'
  #sink: BodySink | undefined
  #isChunkedOut = false
  readonly #held = new PieceQueue()
  readonly #record = new ReplayRecord()
  #transforms: BodyTransform[] | undefined
  #replacement: Buffer | undefined
  #reading: BodyRead | undefined
  #readBody: BufferedBody | undefined
  #copy: BodyCopy | undefined
  #hasFlowed = false
  #hasFailed = false
  /** Incremented for each message. */
  #generation = 0
  tap: BodyTap | undefined
  /** Whether trailer fields are sent, which is possible only if the body is sent chunked. */
  passesTrailers = true
  /** Whether the source is complete or gone. */
  ended = true
  kind: BodyKind = 'none'
  /** Whether everything has been handed to the sink. */
  sent = false
  /** Whether the sink is slow, so that no more must be fed until `drained`. */
  blocked = false
  /** Payload bytes received, and payload bytes sent, without chunk framing. */
  receivedBytes = 0
  sentBytes = 0

  constructor(reader: HeadReader, source: BodySource) {
    this.#reader = reader
    this.#source = source
  }

  /** Starts a message. `length` is only used for `length` and `stream`; it is negative if unknown. */
  start(kind: BodyKind, length: number, isReplayable: boolean): void {
    this.#generation++
    this.kind = kind
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
    if (this.#held.size > 0) this.#held.clear()
    this.#record.start(isReplayable && !this.ended)
    this.#transforms = undefined
    this.#replacement = undefined
    this.#reading = undefined
    this.#readBody = undefined
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

  /** Whether the head states the length of the body. */
  get isLengthKnown(): boolean {
    if (this.kind === 'stream') return this.#length >= 0
    return this.kind === 'length' || this.kind === 'none'
  }

  get trailers(): string {
    return this.#chunks.trailers
  }

  /** Number of bytes that the source will still send; undefined if that is unknown. */
  get remaining(): number | undefined {
    if (this.ended) return 0
    return this.kind === 'length' ? this.#remaining : undefined
  }

  get wantsBytes(): boolean {
    return !this.ended && !this.blocked && this.#mode !== 'waiting'
  }

  /** Whether the body is intact and can be sent from its beginning (again). */
  get isReplayable(): boolean {
    if (this.#hasFailed) return false
    if (!this.#hasFlowed || this.kind === 'none' || this.#replacement !== undefined) return true
    if (this.#transforms !== undefined) return false
    return this.#length === 0 || this.#record.isWhole || this.#readBody?.complete === true
  }

  /** The framing in which the body must be sent: as received, chunked, or with a new length. */
  get framing(): 'as-is' | 'chunked' | number {
    if (this.#transforms !== undefined) return lengthAfter(this.#transforms) ?? 'chunked'
    return this.#replacement === undefined ? 'as-is' : this.#replacement.length
  }

  get known(): BufferedBody | undefined {
    if (this.#readBody !== undefined) return this.#readBody
    if (this.ended && this.receivedBytes === 0 && !this.#hasFailed) return emptyBody
    return this.ended ? this.#copy?.content(!this.#hasFailed) : undefined
  }

  record(maxBytes: number): void {
    if (this.#copy !== undefined || this.#readBody !== undefined) return
    if (!this.ended || this.#held.size > 0) this.#copy = BodyCopy.of(this.#held, maxBytes)
  }

  async buffer(maxBytes: number): Promise<BufferedBody> {
    return this.read(maxBytes)
  }

  read(maxBytes: number, watcher?: BodyWatcher): BufferedBody | Promise<BufferedBody> {
    return this.startReading(maxBytes, watcher).result()
  }

  /** Starts to read up to `maxBytes`, or until the watcher has seen enough. The caller looks after each feed. */
  startReading(maxBytes: number, watcher?: BodyWatcher): BodyRead {
    const reading = new BodyRead(maxBytes, watcher)
    const known = this.#readBody
    if (known?.complete && this.#replacement !== undefined) reading.resolveKnown(known)
    else if (this.#mode === 'flowing' || this.#reading !== undefined) {
      reading.reject(new GatewayError('bug', 'the body is already being read'))
    } else {
      this.#reading = reading
      this.#mode = 'buffering'
      reading.watchHeld(this.#held)
      this.#finishReading()
      if (this.wantsBytes) this.#source.resumeBody()
    }
    return reading
  }

  replace(bytes: Uint8Array, isOther = false): void {
    if (isOther) this.#transforms = undefined
    this.#replacement = bufferOf(bytes)
    this.#readBody = { complete: true, bytes: this.#replacement }
  }

  through(transform: BodyTransform): void {
    this.#transforms ??= []
    if (!this.#transforms.includes(transform)) this.#transforms.push(transform)
  }

  /**
   * Sends the bytes that are held and those that arrive. The head must already be in the sink. With
   * `flushLater`, more of the body is available, and the caller flushes after it.
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
      for (let piece = this.#held.shift(); piece !== undefined; piece = this.#held.shift()) {
        this.#send(piece, 0, piece.length)
      }
      this.#endOver()
    }
    const generation = this.#generation
    if (this.wantsBytes) this.#source.resumeBody()
    // The source may have ended this message and begun another one.
    if (generation === this.#generation && (this.sent || !flushLater)) this.blocked = !sink.flush()
  }

  /** Reads the rest of the body and drops it. */
  discard(): void {
    this.#mode = 'discarding'
    this.#sink = undefined
    this.blocked = false
    if (!this.ended) this.#source.resumeBody()
  }

  /** Drops what was recorded, so that the body cannot be sent again. */
  stopRecording(): void {
    this.#record.stop()
  }

  /** Returns to the state before `flow`. The body must be replayable. */
  rewind(): void {
    if (this.#hasFlowed) {
      this.#held.putBack(this.#record.isWhole ? this.#record.take() : copyOfRead(this.#readBody))
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

  /** Called when the sink can accept data again. */
  drained(): void {
    if (!this.blocked) return
    this.blocked = false
    if (this.wantsBytes) this.#source.resumeBody()
  }

  /** Reads bytes of the body. Returns the offset after them, or a refusal. `isLast`: the last of a `stream`. */
  feed(bytes: Buffer, start: number, end: number, isLast = false): number {
    let next = end
    if (this.kind === 'chunked' && !this.#passOn(bytes, start, end)) {
      next = this.#reader.readChunks(this.#chunks, bytes, start, end, this)
      if (next < 0) return next
      if (this.#chunks.ended) this.ended = true
    } else if (this.kind === 'length') {
      next = Math.min(end, start + this.#remaining)
      this.#remaining -= next - start
      this.onData(bytes, start, next)
      if (this.#remaining === 0) this.ended = true
    } else if (this.kind !== 'chunked') {
      this.onData(bytes, start, end)
      if (isLast && this.kind === 'stream') this.ended = true
    }
    this.#afterFeed()
    return next
  }

  /** Called when the source has ended, with its trailers. Returns false if that truncates the body. */
  finish(trailers = ''): boolean {
    if (this.ended) return true
    if (this.kind !== 'close' && this.kind !== 'stream') return false
    this.#chunks.trailers = trailers
    this.ended = true
    this.#afterFeed()
    return true
  }

  /** Called when the source has failed: rejects reads of the body. */
  fail(error: GatewayError): void {
    this.#reading?.reject(error)
    this.#reading = undefined
    this.#mode = 'waiting'
    this.#hasFailed = true
    this.ended = true
  }

  /** Called when the source broke off. Returns true if a transform has completed the body nevertheless. */
  conclude(): boolean {
    const at = this.#transforms?.findIndex(canFail) ?? -1
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
    else if (this.#mode !== 'discarding') {
      this.#held.push(bytes, start, end)
      this.#reading?.watch(bytes, start, end)
    }
  }

  /** Forwards a chunk that arrived alone with its own framing, as events of a stream arrive. */
  #passOn(bytes: Buffer, start: number, end: number): boolean {
    const sink = this.#isChunkedOut && this.#mode === 'flowing' ? this.#sink : undefined
    if (sink === undefined || this.#record.isWhole) return false
    const from = this.#reader.wholeChunk(this.#chunks, bytes, start, end)
    if (from < 0) return false
    const omitted = omittedBytes(this.#transforms, bytes, from, end - 2)
    const isIntact = omitted !== undefined && omitted.cutStart >= omitted.cutEnd
    if (!isIntact && !this.#relay(bytes, from, end - 2, omitted)) return false
    this.receivedBytes += end - 2 - from
    this.#copy?.add(bytes, from, end - 2)
    if (!isIntact) return true
    this.sentBytes += end - 2 - from
    if (end - start < copyLimit) sink.startWriteBuffer?.()
    sink.appendBytes(bytes, start, end)
    this.tap?.onSent(bytes, from, end - 2)
    return true
  }

  #afterFeed(): void {
    if (this.#mode === 'flowing') {
      this.#endOver()
      if (this.#sink !== undefined) this.blocked = !this.#sink.flush()
    } else if (this.#mode === 'buffering') this.#finishReading()
  }

  /** Ends a read of the whole body once the body is complete or too large. */
  #finishReading(): void {
    const body = this.#reading?.finish(this.#held, this.ended)
    if (body === undefined) return
    if (this.#reading?.isOfBeginning === false) this.#readBody = body
    this.#reading = undefined
    this.#mode = 'waiting'
  }

  #send(bytes: Buffer, start: number, end: number): void {
    // A transform may hold bytes back, so it gets a copy. Transformed bytes are not recorded.
    const all = this.#transforms
    if (all === undefined) this.#write(bytes, start, end, this.#record)
    else if (this.#relay(bytes, start, end, omittedBytes(all, bytes, start, end))) return
    else this.#push(0, copyOf(bytes, start, end))
  }

  /** Sends the bytes as a transform relays or rewrites them; returns false if it must get a copy of them. */
  #relay(bytes: Buffer, start: number, end: number, omitted: OmittedBytes | undefined): boolean {
    if (omitted === undefined) {
      const span = rewrittenBytes(this.#transforms, bytes, start, end)
      if (span !== undefined) this.#write(span.bytes, span.start, span.end, undefined)
      return span !== undefined
    }
    const { cutStart, cutEnd } = omitted
    this.#write(bytes, start, cutStart < cutEnd ? cutStart : end, undefined)
    if (cutStart < cutEnd) this.#write(bytes, cutEnd, end, undefined)
    return true
  }

  #push(index: number, bytes: Uint8Array): void {
    const transform = this.#transforms?.[index]
    if (transform !== undefined) transform.push(bytes, (out) => this.#push(index + 1, out))
    else this.#write(bufferOf(bytes), 0, bytes.length, undefined)
  }

  /** Ends the body if its source has ended, or if a transform lets nothing more through. */
  #endOver(): void {
    const at = this.ended ? -1 : (this.#transforms?.findIndex(isOver) ?? -1)
    if (!this.ended && at < 0) return
    this.#endFrom(at + 1)
    if (!this.ended) this.#mode = 'discarding'
  }

  /** Ends the body through the transforms from index `first` on. */
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

  /** `record` is set if these bytes were not transformed. */
  #write(bytes: Buffer, start: number, end: number, record: ReplayRecord | undefined): void {
    const length = end - start
    const sink = this.#sink
    if (length === 0 || sink === undefined) return
    this.sentBytes += length
    if (this.#isChunkedOut && length < copyLimit) sink.startWriteBuffer?.()
    if (this.#isChunkedOut) sink.appendText(`${length.toString(16)}\r\n`)
    if (record === undefined) sink.appendBytes(bytes, start, end)
    else record.send(sink, bytes, start, end)
    if (this.#isChunkedOut) sink.appendText('\r\n')
    this.tap?.onSent(bytes, start, end)
  }
}
