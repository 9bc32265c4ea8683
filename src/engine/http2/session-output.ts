import type { Http2Limits } from '../limits/http2-limits.ts'
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
import type { ConnectionOutput, StreamOutput } from './stream-output.ts'

/** Answers to control frames that may wait for a peer that does not read. */
const unreadLimit = 1_024

/** The connection that an output belongs to. */
interface OutputSession {
  readonly transport: Transport
  /** No frames are read or written any more. */
  readonly isOver: boolean
  /** A DATA frame was written. */
  onDataSent(): void
  /** A stream has something to send that may not leave now. */
  onWait(): void
}

/** The writing side of a connection, and the windows of both sides. */
export class SessionOutput implements ConnectionOutput, Flushable {
  readonly #session: OutputSession
  readonly #flushes: FlushQueue
  readonly #limits: Http2Limits
  readonly encoder: HpackEncoder = new HpackEncoder()
  /** Streams with something to send, in the order of their turns. */
  readonly waiting = new Set<StreamOutput>()
  /** What the peer admits on the whole connection, and what we do. */
  sendWindow: number = startWindow
  #receiveWindow: number
  #uncredited = 0
  /** Largest frame that is sent. */
  peerFrameSize: number = startFrameSize
  #unreadAnswers = 0
  #isDirty = false

  constructor(flushes: FlushQueue, limits: Http2Limits, session: OutputSession) {
    this.#flushes = flushes
    this.#limits = limits
    this.#session = session
    this.#receiveWindow = Math.max(limits.connectionWindowBytes, startWindow)
  }

  get transport(): Transport {
    return this.#session.transport
  }

  /** The peer has sent so much. Throws if it was not admitted. */
  take(flowLength: number): void {
    this.#receiveWindow -= flowLength
    if (this.#receiveWindow < 0) {
      throw new ConnectionError(errorCodes.flowControl, 'more data than the window')
    }
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

  /** A frame that answers one of the peer's. */
  control(frame: string): void {
    if (this.#session.isOver) return
    if (this.transport.needsDrain && ++this.#unreadAnswers > unreadLimit) throw floodError('unread')
    this.write(frame)
  }

  /** The first frames of this side. */
  writeStart(preface: string, settings: [id: number, value: number][]): void {
    const { maxFrameBytes, streamWindowBytes, connectionWindowBytes } = this.#limits
    settings.push([settingIds.initialWindowSize, streamWindowBytes])
    if (maxFrameBytes !== startFrameSize) settings.push([settingIds.maxFrameSize, maxFrameBytes])
    let start = preface + settingsFrame(settings)
    const more = connectionWindowBytes - startWindow
    if (more > 0) start += windowUpdateFrame(0, more)
    this.write(start)
  }

  /** Data of the whole connection has been taken. */
  credit(length: number): void {
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

  onWait(): void {
    this.#session.onWait()
  }

  /** Appends frames; they leave at the end of this tick of the event loop. */
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

  /** Every stream that waits may send; one that is not done goes to the end. */
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
