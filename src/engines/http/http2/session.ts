import type { GatewayError } from '../../../ground/errors/index.ts'
import { UnreadBytes } from '../bytes/unread-bytes.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { Http2Limits, ReceiveBudget } from '../limits/engine-limits.ts'
import type { FloodKind } from '../limits/http2-floods.ts'
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
  pingFrame,
  protocolError,
  rstStreamFrame,
  settingIds,
  settingsAck,
  startFrameSize,
  startWindow,
  windowLimit,
} from './frames.ts'
import { HpackDecoder } from './hpack-decoder.ts'
import type { Http2Stream, StreamSession } from './http2-stream.ts'
import { TrailerFields } from './message-fields.ts'
import { SessionOutput } from './output.ts'
import { PastStreams } from './past-streams.ts'

/** Window updates with a smaller increment count as floods. */
const smallIncrement = 256
/** Late frames that are ignored for each ended stream, and for each DATA frame that we send. */
const lateFramesPerStream = 16
const lateFramesPerDataFrame = 4

/** A connection to a client or an upstream: frames, windows, settings, and ends of streams. */
export abstract class Http2Session<Stream extends Http2Stream>
  implements TransportOwner, FrameHandler, StreamSession
{
  readonly parts: EngineParts
  readonly limits: Http2Limits
  abstract readonly transport: Transport
  readonly output: SessionOutput
  /** Whether frames are no longer read or written. */
  isOver = false
  protected readonly frames: FrameReader
  readonly #unread = new UnreadBytes()
  protected readonly decoder = new HpackDecoder()
  readonly #guard: FloodGuard
  protected readonly streams = new Map<number, Stream>()
  protected readonly past = new PastStreams()
  /** Number of the highest stream that was begun so far. */
  protected lastStream = 0
  /** Settings of the peer: initial window size, and maximum number of concurrent streams. */
  protected peerWindow: number = startWindow
  protected peerStreams = Number.POSITIVE_INFINITY
  /** Whether the peer supports extended CONNECT (RFC 8441 3). */
  peerConnects = false
  #hasSettings = false
  #hasWindowGrown = false
  #isReading = false
  /** Octets of data that the peer may have sent before it received our resets. */
  #dataUnderWay = 0

  constructor(
    parts: EngineParts,
    limits: Http2Limits,
    maxHeadBytes: number,
    budget: ReceiveBudget,
  ) {
    this.parts = parts
    this.limits = limits
    this.output = new SessionOutput(parts.flushes, limits, budget, this)
    this.#guard = new FloodGuard(() => parts.clock.now())
    const { maxFrameBytes: maxFrameSize } = limits
    const maxBlockSize = maxHeadBytes * 4
    this.frames = new FrameReader(this, { maxFrameSize, maxBlockSize, maxContinuations: 32 })
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
        const next = this.frames.read(unread.bytes, unread.start, unread.end)
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

  /** Checks that the first frame of the peer is SETTINGS (RFC 9113 3.4). */
  #mayRead(): boolean {
    if (this.#hasSettings) return true
    const { bytes, start, size } = this.#unread
    if (size < frameHeadSize) return false
    const isSettings = bytes[start + 3] === frameTypes.settings
    if (!isSettings || ((bytes[start + 4] ?? 0) & frameFlags.ack) !== 0) {
      throw protocolError('the first frame is not SETTINGS')
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
    this.output.countReceived(flowLength)
    const stream = this.streams.get(id)
    if (stream === undefined) {
      this.#onStray(id, flowLength)
      return
    }
    if (flowLength > 0) this.#guard.grant('ping', 1)
    if (stream.isReceiveClosed) {
      this.abortStream(stream, errorCodes.streamClosed, 'data behind the end')
      return
    }
    stream.receiveWindow -= flowLength
    if (stream.receiveWindow < 0)
      this.abortStream(stream, errorCodes.flowControl, 'window exceeded')
  }

  /** While we send data, peers may measure the round trip by pings (as gRPC does), and update windows. */
  onDataSent(): void {
    this.#guard.grant('ping', 1)
    this.#guard.grant('late', lateFramesPerDataFrame)
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

  protected onTrailers(
    stream: Stream,
    bytes: Buffer,
    start: number,
    end: number,
    isLast: boolean,
  ): void {
    const fields = new TrailerFields()
    this.decoder.decode(bytes, start, end, fields)
    const { isMalformed, lines } = fields
    const isForbidden = lines !== '' && this.parts.reader.checkTrailerText(lines) < 0
    if (stream.isReceiveClosed) {
      this.abortStream(stream, errorCodes.streamClosed, 'HEADERS behind the end')
    } else if (!isLast || isMalformed || isForbidden) {
      this.abortStream(stream, errorCodes.protocol, 'malformed trailers')
    } else stream.endReceiving(lines)
  }

  /** Called for data on a stream that does not exist: it was never begun, or it has ended. */
  #onStray(id: number, flowLength: number): void {
    if (this.isUnused(id)) throw protocolError('frame on an idle stream')
    if (this.past.wasReset(id) === true) {
      // The peer may not have received the reset yet, but its data must fit into the window it had.
      this.#dataUnderWay -= flowLength
      if (this.#dataUnderWay < 0) this.flood('stray')
      return
    }
    this.flood('stray')
    this.output.control(rstStreamFrame(id, errorCodes.streamClosed))
  }

  onDrain(): void {
    this.output.onDrain()
  }

  /** Whether the stream was not begun so far. Only clients begin streams, with odd numbers. */
  protected isUnused(id: number): boolean {
    return id > this.lastStream || (id & 1) === 0
  }

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
    if (this.isUnused(id)) throw protocolError('reset of an idle stream')
    const stream = this.streams.get(id)
    if (stream === undefined) {
      this.flood('late')
      // The resets of both sides have crossed: the peer has ended the stream and must not send on it.
      if (this.past.wasReset(id) === true) this.remember(id, false)
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
      const isInRange = value >= startFrameSize && value <= frameSizeLimit
      if (!isInRange) throw protocolError('MAX_FRAME_SIZE out of range')
      // Larger frames have no advantage, because data is cut into pieces that are copied.
      this.output.peerFrameSize = Math.min(value, startFrameSize)
    } else if (id === settingIds.enablePush || id === settingIds.enableConnectProtocol) {
      if (value > 1) throw protocolError('a setting is 0 or 1')
      if (id === settingIds.enableConnectProtocol) this.peerConnects = value === 1
    }
  }

  #resizeWindows(size: number): void {
    checkWindow(size)
    const change = size - this.peerWindow
    this.peerWindow = size
    for (const stream of this.streams.values()) {
      stream.output.sendWindow += change
      checkWindow(stream.output.sendWindow)
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

  /** Ignores the acknowledgement: the limits that we announce are enforced from the start. */
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
    else if (this.isUnused(id)) throw protocolError('update of an idle stream')
    else this.flood('late')
  }

  #growConnectionWindow(increment: number): void {
    if (increment === 0) throw protocolError('window update by 0')
    this.output.sendWindow += increment
    checkWindow(this.output.sendWindow)
    if (increment < smallIncrement) this.flood(this.output.waiting.size > 0 ? 'window' : 'late')
    this.output.sendWaiting()
  }

  #growWindow(stream: Stream, increment: number): void {
    stream.output.sendWindow += increment
    if (increment === 0) this.abortStream(stream, errorCodes.protocol, 'window update by 0')
    else if (stream.output.sendWindow > windowLimit) {
      this.abortStream(stream, errorCodes.flowControl, 'window too large')
    } else {
      if (increment < smallIncrement) this.flood(stream.output.backlog > 0 ? 'window' : 'late')
      if (stream.output.backlog > 0) this.output.sendOne(stream.output)
    }
  }

  abstract onGoaway(lastStream: number, code: number): void

  onUnknown(_type: number): void {
    this.flood('stray')
  }

  /** Counts a frame of a limited kind. Throws if there are too many. */
  protected flood(kind: FloodKind): void {
    if (!this.#guard.admits(kind)) throw floodError(kind)
  }

  // --- endings ---

  /** Sends RST_STREAM and forgets the stream. */
  reset(stream: Stream, code: number): void {
    if (this.streams.get(stream.id) !== stream) return
    this.streams.delete(stream.id)
    if (!stream.isReceiveClosed) this.#dataUnderWay += Math.max(0, stream.receiveWindow)
    stream.closeBoth()
    this.remember(stream.id, true)
    if (!this.isOver) this.output.write(rstStreamFrame(stream.id, code))
    this.onStreamGone()
  }

  /** Remembers a stream that has ended; the peer may still send on a stream that we have reset. */
  protected remember(id: number, wasReset: boolean): void {
    this.past.add(id, wasReset)
    this.#guard.grant('late', lateFramesPerStream)
  }

  /** Forgets a stream that both sides have ended. */
  forget(stream: Stream): void {
    if (this.streams.get(stream.id) !== stream) return
    this.streams.delete(stream.id)
    stream.closeBoth()
    this.remember(stream.id, false)
    this.onStreamGone()
  }

  /** Resets a stream because of a protocol violation of the peer. Throws if there are too many. */
  abortStream(stream: Stream, code: number, detail: string): void {
    this.flood('reset')
    this.reset(stream, code)
    stream.onBroken(this.faultOf(detail))
  }

  /** Returns the error of a request on whose stream the peer has violated the protocol. */
  protected abstract faultOf(detail: string): GatewayError

  /** Called when a stream has ended. */
  protected abstract onStreamGone(): void

  /** Called when everything that has arrived has been read. */
  protected abstract onRead(): void

  /** Sends a GOAWAY with the reason and ends the connection. */
  protected abstract fail(code: number, reason: string): void

  abstract onEnd(): void
  abstract onClose(error: Error | undefined): void
}

function checkWindow(size: number): void {
  if (size > windowLimit) throw new ConnectionError(errorCodes.flowControl, 'window too large')
}
