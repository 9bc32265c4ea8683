import type { GatewayError } from '../../errors/index.ts'
import { UnreadBytes } from '../bytes/unread-bytes.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { FloodKind } from '../limits/http2-floods.ts'
import type { Http2Limits } from '../limits/http2-limits.ts'
import type { Transport, TransportOwner } from '../sockets/transport.ts'
import { FloodGuard } from './flood-guard.ts'
import { type FrameHandler, FrameReader } from './frame-reader.ts'
import {
  ConnectionError,
  errorCodes,
  floodError,
  frameFlags,
  frameHeadSize,
  frameSizeLimit,
  frameTypes,
  goawayFrame,
  pingFrame,
  rstStreamFrame,
  settingIds,
  settingsAck,
  startFrameSize,
  startWindow,
  windowLimit,
} from './frames.ts'
import { HpackDecoder } from './hpack-decoder.ts'
import type { Http2Stream, StreamSession } from './http2-stream.ts'
import { PastStreams } from './past-streams.ts'
import { SessionOutput } from './session-output.ts'

/** Smaller steps of a window are counted. */
const smallStep = 256
/** Frames that may be ignored for each stream that has ended, and for each DATA frame that we send. */
const lateFramesOfStream = 16
const lateFramesOfData = 4

/** What both sides of a connection have in common: frames, windows, settings, and how it ends. */
export abstract class Http2Session implements TransportOwner, FrameHandler, StreamSession {
  protected readonly parts: EngineParts
  protected readonly limits: Http2Limits
  abstract readonly transport: Transport
  readonly output: SessionOutput
  /** No frames are read or written any more. */
  isOver = false
  readonly #reader: FrameReader
  readonly #unread = new UnreadBytes()
  protected readonly decoder: HpackDecoder = new HpackDecoder()
  protected readonly guard: FloodGuard
  protected readonly streams = new Map<number, Http2Stream>()
  /** The latest streams that are over, and whether we have reset them. */
  readonly #past = new PastStreams()
  /** Settings of the peer. */
  protected peerWindow: number = startWindow
  protected peerStreams = Number.POSITIVE_INFINITY
  protected peerConnects = false
  #hasSettings = false
  #hasWindowGrown = false
  #isReading = false
  /** Octets of data that the peer may have sent before it learned of our resets. */
  #dataUnderWay = 0

  constructor(parts: EngineParts, limits: Http2Limits, maxBlockSize: number) {
    this.parts = parts
    this.limits = limits
    this.output = new SessionOutput(parts.flushes, limits, this)
    this.guard = new FloodGuard(() => parts.clock.now())
    const { maxFrameBytes: maxFrameSize } = limits
    this.#reader = new FrameReader(this, { maxFrameSize, maxBlockSize, maxContinuations: 32 })
  }

  /** What we admit to one stream. */
  get streamWindow(): number {
    return this.limits.streamWindowBytes
  }

  protected get isInBlock(): boolean {
    return this.#reader.isInBlock
  }

  toError(thrown: unknown): GatewayError {
    return this.parts.toError(thrown)
  }

  // --- reading ---

  onBytes(bytes: Buffer, start: number, end: number): void {
    if (this.isOver) return
    this.#unread.add(bytes, start, end)
    this.#pump()
    this.#unread.keep(bytes)
  }

  #pump(): void {
    if (this.#isReading) return
    this.#isReading = true
    const unread = this.#unread
    try {
      while (!this.isOver && unread.size > 0 && this.#mayRead()) {
        const next = this.#reader.read(unread.bytes, unread.start, unread.end)
        if (next === unread.start) break
        unread.start = next
      }
    } catch (thrown) {
      this.#fail(thrown)
    }
    this.#isReading = false
    if (this.isOver) unread.clear()
    else this.onRead()
  }

  /** The first frame of a peer is SETTINGS (RFC 9113 3.4). */
  #mayRead(): boolean {
    if (this.#hasSettings) return true
    const { bytes, start, size } = this.#unread
    if (size < frameHeadSize) return false
    const isSettings = bytes[start + 3] === frameTypes.settings
    if (!isSettings || ((bytes[start + 4] ?? 0) & frameFlags.ack) !== 0) {
      throw new ConnectionError(errorCodes.protocol, 'SETTINGS come first')
    }
    this.#hasSettings = true
    return true
  }

  #fail(thrown: unknown): void {
    if (thrown instanceof ConnectionError) {
      if (thrown.flood !== undefined) this.parts.counters.http2Floods[thrown.flood]++
      this.fail(thrown.code, thrown.message)
    } else {
      this.parts.toError(thrown)
      this.fail(errorCodes.internal, 'internal error')
    }
  }

  onDataFrame(id: number, flowLength: number): void {
    this.output.take(flowLength)
    const stream = this.streams.get(id)
    if (stream === undefined) {
      this.#onStray(id, flowLength)
      return
    }
    if (flowLength > 0) this.guard.grant('ping', 1)
    if (stream.isReceiveClosed) {
      this.abortStream(stream, errorCodes.streamClosed, 'data behind the end')
      return
    }
    stream.receiveWindow -= flowLength
    if (stream.receiveWindow < 0)
      this.abortStream(stream, errorCodes.flowControl, 'window exceeded')
  }

  /** Peers measure the round trip with pings while data moves (gRPC does), and give windows back. */
  onDataSent(): void {
    this.guard.grant('ping', 1)
    this.guard.grant('late', lateFramesOfData)
  }

  onData(id: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const stream = this.streams.get(id)
    if (stream === undefined || stream.isReceiveClosed) this.output.credit(end - start)
    else stream.onData(bytes, start, end, isLast)
  }

  onDataEnd(id: number, padding: number, isLast: boolean, length: number): void {
    if (length === 0 && !isLast) this.flood('empty')
    const stream = this.streams.get(id)
    if (stream === undefined) {
      if (length === 0 && isLast) this.flood('late')
      if (padding > 0) this.output.credit(padding)
      return
    }
    if (padding > 0) stream.credit(padding)
    if (isLast) stream.endReceiving('')
  }

  abstract onHeaders(
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
    isLast: boolean,
    dependency: number,
  ): void

  /** Data on a stream that does not exist: it was never begun, or it is over. */
  #onStray(id: number, flowLength: number): void {
    if (this.isUnused(id)) throw new ConnectionError(errorCodes.protocol, 'frame on an idle stream')
    if (this.#past.wasReset(id) === true) {
      // The peer may not have learned of the reset yet, but it had no more than its window.
      this.#dataUnderWay -= flowLength
      if (this.#dataUnderWay < 0) this.flood('stray')
      return
    }
    this.flood('stray')
    this.output.control(rstStreamFrame(id, errorCodes.streamClosed))
  }

  /** What is known of a stream that is over: true where we have reset it. */
  protected pastOf(id: number): boolean | undefined {
    return this.#past.wasReset(id)
  }

  onDrain(): void {
    this.output.onDrain()
  }

  /** A stream has something to send that may not leave now. */
  onWait(): void {
    // For sessions that bound how long that may last.
  }

  /** This stream has not begun so far. */
  protected abstract isUnused(id: number): boolean

  onPriority(id: number, dependency: number): void {
    this.flood('priority')
    if (dependency === id) this.onBadFrame(id, errorCodes.protocol)
  }

  onBadFrame(id: number, code: number): void {
    const stream = this.streams.get(id)
    if (stream !== undefined) this.abortStream(stream, code, 'bad frame')
    // An idle stream cannot be reset (RFC 9113 6.4).
    else if (this.isUnused(id)) throw new ConnectionError(code, 'bad frame on an idle stream')
    else this.flood('stray')
  }

  onReset(id: number, code: number): void {
    if (this.isUnused(id)) throw new ConnectionError(errorCodes.protocol, 'reset of an idle stream')
    const stream = this.streams.get(id)
    if (stream === undefined) {
      this.flood('late')
      // Our reset and the peer's have met: it has ended the stream itself, and may send no more on it.
      if (this.#past.wasReset(id) === true) this.remember(id, false)
      return
    }
    stream.closeReset()
    this.streams.delete(id)
    this.remember(id, false)
    stream.onReset(code)
    this.onStreamGone()
  }

  onSetting(id: number, value: number): void {
    if (id === settingIds.headerTableSize) this.output.encoder.resize(value)
    else if (id === settingIds.maxConcurrentStreams) this.peerStreams = value
    else if (id === settingIds.initialWindowSize) this.#resizeWindows(value)
    else if (id === settingIds.maxFrameSize) {
      if (value < startFrameSize || value > frameSizeLimit) {
        throw new ConnectionError(errorCodes.protocol, 'MAX_FRAME_SIZE out of range')
      }
      // Larger frames gain nothing: what is sent is cut into pieces that are copied.
      this.output.peerFrameSize = Math.min(value, startFrameSize)
    } else if (id === settingIds.enablePush || id === settingIds.enableConnectProtocol) {
      if (value > 1) throw new ConnectionError(errorCodes.protocol, 'a setting is 0 or 1')
      if (id === settingIds.enableConnectProtocol) this.peerConnects = value === 1
    }
  }

  #resizeWindows(size: number): void {
    if (size > windowLimit) throw new ConnectionError(errorCodes.flowControl, 'window too large')
    const change = size - this.peerWindow
    this.peerWindow = size
    for (const stream of this.streams.values()) {
      stream.output.sendWindow += change
      if (stream.output.sendWindow > windowLimit) {
        throw new ConnectionError(errorCodes.flowControl, 'window too large')
      }
    }
    if (change > 0) this.#hasWindowGrown = true
  }

  onSettingsEnd(): void {
    this.flood('settings')
    this.output.control(settingsAck)
    if (!this.#hasWindowGrown) return
    this.#hasWindowGrown = false
    this.output.sendWaiting()
  }

  /** Ignored: the limits that we announce are enforced from the start. */
  onSettingsAck(): void {
    this.flood('late')
  }

  onPing(payload: string, isAck: boolean): void {
    if (isAck) {
      this.flood('late')
      this.onPong(payload)
      return
    }
    this.flood('ping')
    this.output.control(pingFrame(payload, true))
  }

  protected abstract onPong(payload: string): void

  onWindowUpdate(id: number, increment: number): void {
    if (id === 0) {
      this.#growConnectionWindow(increment)
      return
    }
    const stream = this.streams.get(id)
    if (stream !== undefined) this.#growWindow(stream, increment)
    else if (this.isUnused(id)) {
      throw new ConnectionError(errorCodes.protocol, 'update of an idle stream')
    } else this.flood('late')
  }

  #growConnectionWindow(increment: number): void {
    if (increment === 0) throw new ConnectionError(errorCodes.protocol, 'window update by 0')
    this.output.sendWindow += increment
    if (this.output.sendWindow > windowLimit) {
      throw new ConnectionError(errorCodes.flowControl, 'window too large')
    }
    if (increment < smallStep) this.flood(this.output.waiting.size > 0 ? 'window' : 'late')
    this.output.sendWaiting()
  }

  #growWindow(stream: Http2Stream, increment: number): void {
    stream.output.sendWindow += increment
    if (increment === 0) this.abortStream(stream, errorCodes.protocol, 'window update by 0')
    else if (stream.output.sendWindow > windowLimit) {
      this.abortStream(stream, errorCodes.flowControl, 'window too large')
    } else {
      if (increment < smallStep) this.flood(stream.output.backlog > 0 ? 'window' : 'late')
      if (stream.output.backlog > 0) this.output.sendOne(stream.output)
    }
  }

  abstract onGoaway(lastStream: number, code: number): void

  onUnknown(_type: number): void {
    this.flood('stray')
  }

  /** One more of something that costs us and leads nowhere. Throws if it is one too many. */
  protected flood(kind: FloodKind): void {
    if (!this.guard.admits(kind)) throw floodError(kind)
  }

  // --- ends ---

  /** Tells the peer that a stream is over, and forgets it. */
  reset(stream: Http2Stream, code: number): void {
    if (this.streams.get(stream.id) !== stream) return
    this.streams.delete(stream.id)
    if (!stream.isReceiveClosed) this.#dataUnderWay += Math.max(0, stream.receiveWindow)
    stream.closeBoth()
    this.remember(stream.id, true)
    if (!this.isOver) this.output.write(rstStreamFrame(stream.id, code))
    this.onStreamGone()
  }

  /** A stream is over; where we have reset it, the peer may still send on it. */
  protected remember(id: number, wasReset: boolean): void {
    this.#past.add(id, wasReset)
    this.guard.grant('late', lateFramesOfStream)
  }

  /** Both sides have ended a stream. */
  forget(stream: Http2Stream): void {
    if (this.streams.get(stream.id) !== stream) return
    this.streams.delete(stream.id)
    stream.closeBoth()
    this.remember(stream.id, false)
    this.onStreamGone()
  }

  /** Resets a stream for a fault of the peer. Throws if it is one too many. */
  abortStream(stream: Http2Stream, code: number, detail: string): void {
    this.flood('reset')
    this.reset(stream, code)
    stream.onBroken(this.faultOf(detail))
  }

  /** The error of a request whose stream the peer has broken. */
  protected abstract faultOf(detail: string): GatewayError

  /** There is one stream less. */
  protected abstract onStreamGone(): void

  /** What has arrived has been read. */
  protected abstract onRead(): void

  /** The highest stream of the peer that was looked at. */
  protected abstract get lastPeerStream(): number

  /** Says why, and ends the connection. */
  protected fail(code: number, reason: string): void {
    if (this.isOver) return
    this.transport.appendText(goawayFrame(this.lastPeerStream, code, reason))
    this.close()
  }

  /** Sends what is written, then ends. */
  protected abstract close(): void

  abstract onEnd(): void
  abstract onClose(error: Error | undefined): void
}
