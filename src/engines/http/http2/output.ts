/** The sending side of an HTTP/2 connection and of its streams. */

import { latin1Text } from '../../../ground/base/latin1.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import type { Http2Limits, ReceiveBudget } from '../limits/engine-limits.ts'
import type { Flushable, FlushQueue } from '../sockets/flush-queue.ts'
import type { Transport } from '../sockets/transport.ts'
import {
  ConnectionError,
  errorCodes,
  floodError,
  frameFlags,
  frameHead,
  frameTypes,
  headerFrames,
  settingIds,
  settingsFrame,
  startFrameSize,
  startWindow,
  windowUpdateFrame,
} from './frames.ts'
import { HpackEncoder } from './hpack-encoder.ts'

/** Maximum number of replies to control frames that wait for a peer that does not read. */
const unreadLimit = 1_024

/** The connection that an output belongs to. */
interface OutputSession {
  readonly transport: Transport
  /** Whether frames are no longer read or written. */
  readonly isOver: boolean
  /** Called when a DATA frame was written. */
  onDataSent(): void
  /** Called when a stream has data that may not be sent now. */
  onWait?(): void
}

/** The sending side of a connection, and the connection's windows for both directions. */
export class SessionOutput implements Flushable {
  readonly #session: OutputSession
  readonly #flushes: FlushQueue
  readonly #limits: Http2Limits
  readonly encoder: HpackEncoder = new HpackEncoder()
  /** Streams with something to send, in the order in which they send. */
  readonly waiting = new Set<StreamOutput>()
  /** Connection windows in octets: what we may still send, and what the peer may still send. */
  sendWindow: number = startWindow
  #receiveWindow: number
  #uncredited = 0
  readonly #budget: ReceiveBudget
  /** Octets of unread data that the peer may send again already. */
  #advanced = 0
  /** Maximum size of a frame that is sent. */
  peerFrameSize: number = startFrameSize
  #unreadAnswers = 0
  #isDirty = false

  constructor(
    flushes: FlushQueue,
    limits: Http2Limits,
    budget: ReceiveBudget,
    session: OutputSession,
  ) {
    this.#flushes = flushes
    this.#budget = budget
    this.#limits = limits
    this.#session = session
    this.#receiveWindow = Math.max(limits.connectionWindowBytes, startWindow)
  }

  get transport(): Transport {
    return this.#session.transport
  }

  /** Counts data that the peer has sent. Throws if it exceeds the window. */
  countReceived(flowLength: number): void {
    this.#receiveWindow -= flowLength
    if (this.#receiveWindow < 0) {
      throw new ConnectionError(errorCodes.flowControl, 'more data than the window')
    }
    this.#advance(flowLength)
  }

  /**
   * Reopens the connection window before the data is read, so that unread data of one stream does not
   * stop other streams (RFC 9113 5.2.2). Streams without readers are bounded by their own windows.
   */
  #advance(length: number): void {
    if (this.#session.isOver || this.#budget.unread + length > this.#budget.limit) return
    this.#budget.unread += length
    this.#advanced += length
    this.#reopen(length)
  }

  /** Whether unread data holds most of the connection window, because the budget is used up. */
  get isReceiveBlocked(): boolean {
    return this.#receiveWindow * 4 < this.#limits.connectionWindowBytes
  }

  writeHeaders(id: number, block: string, isLast: boolean): void {
    this.write(headerFrames(id, block, isLast, this.peerFrameSize))
  }

  writeData(id: number, piece: string, isLast: boolean): void {
    this.sendWindow -= piece.length
    this.#session.onDataSent()
    const flags = isLast ? frameFlags.endStream : 0
    this.write(frameHead(piece.length, frameTypes.data, flags, id) + piece)
  }

  /** Writes a frame in reply to a frame of the peer. */
  control(frame: string): void {
    if (this.#session.isOver) return
    if (this.transport.needsDrain && ++this.#unreadAnswers > unreadLimit) throw floodError('unread')
    this.write(frame)
  }

  /** Writes the first frames of this side. */
  writeStart(preface: string, settings: [id: number, value: number][]): void {
    const { maxFrameBytes, streamWindowBytes, connectionWindowBytes } = this.#limits
    settings.push([settingIds.initialWindowSize, streamWindowBytes])
    if (maxFrameBytes !== startFrameSize) settings.push([settingIds.maxFrameSize, maxFrameBytes])
    let start = preface + settingsFrame(settings)
    const more = connectionWindowBytes - startWindow
    if (more > 0) start += windowUpdateFrame(0, more)
    this.write(start)
  }

  /** Called when data of any stream has been taken. */
  credit(length: number): void {
    const advanced = Math.min(length, this.#advanced)
    this.#advanced -= advanced
    this.#budget.unread -= advanced
    if (advanced < length) this.#reopen(length - advanced)
  }

  /** Called when the connection has ended: nothing more can be received. */
  endReceiving(): void {
    this.#budget.unread -= this.#advanced
    this.#advanced = 0
  }

  #reopen(length: number): void {
    this.#uncredited += length
    if (this.#session.isOver || this.#uncredited * 2 < this.#limits.connectionWindowBytes) return
    this.#receiveWindow += this.#uncredited
    this.updateWindow(0, this.#uncredited)
    this.#uncredited = 0
  }

  updateWindow(id: number, increment: number): void {
    if (this.#session.isOver) return
    this.write(windowUpdateFrame(id, increment))
  }

  /** Queues a stream to send later, after those that wait already. */
  wait(stream: StreamOutput): void {
    this.waiting.add(stream)
    this.#session.onWait?.()
  }

  /** Appends frames, which are sent at the end of this tick of the event loop. */
  write(frames: string): void {
    this.transport.appendText(frames)
    if (this.#isDirty) return
    this.#isDirty = true
    this.#flushes.add(this)
  }

  flushNow(): void {
    this.#isDirty = false
    if (!this.transport.closed) this.transport.flush()
  }

  onDrain(): void {
    this.#unreadAnswers = 0
    this.sendWaiting()
  }

  /** Lets every waiting stream send. A stream with more to send goes to the end of the queue. */
  sendWaiting(): void {
    if (this.waiting.size === 0) return
    for (const stream of [...this.waiting]) {
      if (this.#session.isOver || this.transport.needsDrain) return
      this.sendOne(stream)
    }
  }

  sendOne(stream: StreamOutput): void {
    stream.send()
    this.waiting.delete(stream)
    if (stream.needsDrain) this.waiting.add(stream)
    else stream.drained()
  }
}

/** The stream that an output belongs to. */
export interface OutputStream {
  /** Number of the stream; 0 until it is opened. */
  readonly id: number
  encodeHead(head: string): string
  /** For streams that begin on this side: whether the first head may be sent now. */
  mayOpen?(): boolean
  /** Called before the first head is sent: gives the stream its number. */
  open?(): void
  /** Called when END_STREAM has been written. */
  onSendEnd(): void
  /** Called when everything that waited has been sent. */
  onSendDrain(): void
}

/**
 * The sending half of a stream: a head, data under flow control, trailers (RFC 9113 5.1, 5.2). Data
 * that does not fit into the windows is copied and waits here as text. The head waits for the next
 * flush, so that END_STREAM can be set on it if there is no body.
 */
export class StreamOutput implements BodySink {
  readonly #connection: SessionOutput
  readonly #stream: OutputStream
  /** Octets that we may still send; negative if the peer has lowered its setting. */
  sendWindow: number
  /** Encoded only when it is sent: header blocks must change the table in the order of sending. */
  #head: string | undefined
  #pending = ''
  #trailers = ''
  #isEnding = false
  /** Whether to ignore `endBody`, since an extended CONNECT stays open after its head, until `end`. */
  withholdsEnd = false
  /** Number of octets of data that have been sent. */
  sentBytes = 0
  /** Whether END_STREAM was sent, or the stream was reset. */
  isClosed = false
  /** Whether `flush` has returned false, so that the stream waits for `onSendDrain`. */
  isAwaitingDrain = false

  constructor(connection: SessionOutput, stream: OutputStream, sendWindow: number) {
    this.#connection = connection
    this.#stream = stream
    this.sendWindow = sendWindow
  }

  /** Number of bytes that wait for the peer. */
  get backlog(): number {
    return this.#pending.length
  }

  /** Whether bytes of this stream wait, or the connection is slow. */
  get needsDrain(): boolean {
    return !this.isClosed && (this.#hasUnsent || this.#connection.transport.needsDrain)
  }

  get #hasUnsent(): boolean {
    return this.#pending.length > 0 || this.#isEnding
  }

  /** Sets the head, in HTTP/1.1 text. */
  setHead(head: string): void {
    this.#head = head
  }

  /** Drops the head and what follows it. Returns false if the head was sent, or if there is none. */
  takeBack(): boolean {
    if (this.#head === undefined) return false
    this.#dropUnsent()
    this.#isEnding = false
    return true
  }

  appendText(latin1: string): void {
    if (!this.isClosed) this.#pending += latin1
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    if (!this.isClosed) this.#pending += latin1Text(bytes, start, end)
  }

  endBody(trailers: string): void {
    if (this.withholdsEnd) return
    this.#trailers = trailers
    this.#isEnding = true
  }

  flush(): boolean {
    if (this.#stream.id === 0 && this.#stream.mayOpen?.() === false) return true
    this.send()
    if (!this.needsDrain) return true
    this.isAwaitingDrain = true
    this.#connection.wait(this)
    return false
  }

  /** Ends the stream after everything that was appended. */
  end(): void {
    this.withholdsEnd = false
    this.endBody('')
    this.flush()
  }

  /** Called when everything has been sent; notifies the stream if it waits for that. */
  drained(): void {
    if (!this.isAwaitingDrain) return
    this.isAwaitingDrain = false
    this.#stream.onSendDrain()
  }

  /** Sends what the windows allow now. */
  send(): void {
    if (this.isClosed) return
    if (this.#head !== undefined) this.#sendHead(this.#head)
    while (this.#pending.length > 0 && this.#sendData()) {
      // Each step sends one frame.
    }
    if (!this.#isEnding || this.isClosed || this.#pending.length > 0) return
    if (this.#trailers === '') this.#connection.writeData(this.#stream.id, '', true)
    else {
      const block = this.#connection.encoder.trailers(this.#trailers)
      this.#connection.writeHeaders(this.#stream.id, block, true)
    }
    this.#sendEnded()
  }

  #sendHead(head: string): void {
    this.#head = undefined
    if (this.#stream.id === 0) this.#stream.open?.()
    const isLast = this.#isEnding && this.#pending.length === 0 && this.#trailers === ''
    this.#connection.writeHeaders(this.#stream.id, this.#stream.encodeHead(head), isLast)
    if (isLast) this.#sendEnded()
  }

  /** Sends one DATA frame. Returns false if nothing may be sent now. */
  #sendData(): boolean {
    const connection = this.#connection
    const room = Math.min(this.sendWindow, connection.sendWindow, connection.peerFrameSize)
    if (room <= 0 || connection.transport.needsDrain) return false
    const pending = this.#pending
    const isWhole = pending.length <= room
    const piece = isWhole ? pending : pending.slice(0, room)
    this.#pending = isWhole ? '' : pending.slice(room)
    const isLast = isWhole && this.#isEnding && this.#trailers === ''
    this.sendWindow -= piece.length
    this.sentBytes += piece.length
    connection.writeData(this.#stream.id, piece, isLast)
    if (isLast) this.#sendEnded()
    return true
  }

  #sendEnded(): void {
    this.isClosed = true
    this.#stream.onSendEnd()
  }

  /** Drops everything that waits; nothing more is sent. */
  close(): void {
    this.isClosed = true
    this.isAwaitingDrain = false
    this.#connection.waiting.delete(this)
    this.#dropUnsent()
  }

  #dropUnsent(): void {
    this.#head = undefined
    this.#pending = ''
    this.#trailers = ''
  }
}
