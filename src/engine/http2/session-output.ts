import type { EngineParts } from '../contracts/engine-parts.ts'
import type { Http2Limits } from '../limits/http2-limits.ts'
import type { Flushable } from '../sockets/flush-queue.ts'
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
import type { SendingStream } from './sending-stream.ts'

/** Answers to control frames that may wait for a peer that does not read. */
const unreadLimit = 1_024

/** The writing side of a connection, and the windows of both sides. */
export abstract class SessionOutput implements Flushable {
  protected readonly parts: EngineParts
  protected readonly limits: Http2Limits
  abstract readonly transport: Transport
  readonly encoder: HpackEncoder = new HpackEncoder()
  /** Streams with something to send, in the order of their turns. */
  readonly waiting = new Set<SendingStream>()
  /** What the peer admits on the whole connection, and what we do. */
  sendWindow: number = startWindow
  #receiveWindow: number
  #uncredited = 0
  /** Largest frame that is sent. */
  peerFrameSize: number = startFrameSize
  #unreadAnswers = 0
  #isDirty = false
  /** No frames are read or written any more. */
  protected isOver = false

  constructor(parts: EngineParts, limits: Http2Limits) {
    this.parts = parts
    this.limits = limits
    this.#receiveWindow = Math.max(limits.connectionWindowBytes, startWindow)
  }

  /** What we admit to one stream. */
  get streamWindow(): number {
    return this.limits.streamWindowBytes
  }

  /** The peer has sent so much. Throws where it was not admitted. */
  protected take(flowLength: number): void {
    this.#receiveWindow -= flowLength
    if (this.#receiveWindow < 0) {
      throw new ConnectionError(errorCodes.flowControl, 'more data than the window')
    }
  }

  writeHeaders(id: number, block: string, isLast: boolean): void {
    this.transport.appendText(headerFrames(id, block, isLast, this.peerFrameSize))
    this.markDirty()
  }

  writeData(id: number, piece: string, isLast: boolean): void {
    this.sendWindow -= piece.length
    this.onDataSent()
    const flags = isLast ? frameFlags.endStream : 0
    this.transport.appendText(frameHead(piece.length, frameTypes.data, flags, id) + piece)
    this.markDirty()
  }

  /** A DATA frame was written. */
  protected abstract onDataSent(): void

  /** A frame that answers one of the peer's. */
  protected control(frame: string): void {
    if (this.isOver) return
    if (this.transport.needsDrain && ++this.#unreadAnswers > unreadLimit) throw floodError('unread')
    this.transport.appendText(frame)
    this.markDirty()
  }

  /** The first frames of this side. */
  protected writeStart(preface: string, settings: [id: number, value: number][]): void {
    const { maxFrameBytes, streamWindowBytes, connectionWindowBytes } = this.limits
    settings.push([settingIds.initialWindowSize, streamWindowBytes])
    if (maxFrameBytes !== startFrameSize) settings.push([settingIds.maxFrameSize, maxFrameBytes])
    let start = preface + settingsFrame(settings)
    const more = connectionWindowBytes - startWindow
    if (more > 0) start += windowUpdateFrame(0, more)
    this.transport.appendText(start)
    this.markDirty()
  }

  /** Data of the whole connection has been taken. */
  credit(length: number): void {
    this.#uncredited += length
    if (this.isOver || this.#uncredited * 2 < this.limits.connectionWindowBytes) return
    this.#receiveWindow += this.#uncredited
    this.updateWindow(0, this.#uncredited)
    this.#uncredited = 0
  }

  updateWindow(id: number, increment: number): void {
    if (this.isOver) return
    this.transport.appendText(windowUpdateFrame(id, increment))
    this.markDirty()
  }

  /** A stream has something to send that may not leave now. */
  onWait(): void {
    // For sessions that bound how long that may last.
  }

  /** Bytes were appended: they leave at the end of this turn. */
  markDirty(): void {
    if (this.#isDirty) return
    this.#isDirty = true
    this.parts.flushes.add(this)
  }

  flushNow(): void {
    this.#isDirty = false
    if (!this.transport.closed) this.transport.flush()
  }

  onDrain(): void {
    this.#unreadAnswers = 0
    this.sendWaiting()
  }

  /** Everybody who waits gets a turn; who is not done goes to the end. */
  protected sendWaiting(): void {
    if (this.waiting.size === 0) return
    for (const stream of [...this.waiting]) {
      if (this.isOver || this.transport.needsDrain) return
      this.sendOne(stream)
    }
  }

  protected sendOne(stream: SendingStream): void {
    stream.send()
    this.waiting.delete(stream)
    if (stream.needsDrain && !stream.isSendClosed) this.waiting.add(stream)
    else if (stream.isAwaitingDrain) {
      stream.isAwaitingDrain = false
      stream.onSendDrain()
    }
  }
}
