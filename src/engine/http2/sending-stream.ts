import type { GatewayError } from '../../errors/index.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import { latin1Text } from '../bytes/latin1.ts'
import type { Transport } from '../sockets/transport.ts'
import type { HpackEncoder } from './hpack-encoder.ts'

/** What a stream needs of the connection that it is one of. */
export interface StreamSession {
  readonly transport: Transport
  readonly encoder: HpackEncoder
  /** Streams with something to send, in the order of their turns. */
  readonly waiting: Set<SendingStream>
  /** What the peer admits on the whole connection; what we admit to one stream. */
  readonly sendWindow: number
  readonly streamWindow: number
  /** Largest frame that is sent. */
  readonly peerFrameSize: number
  writeHeaders(id: number, block: string, isLast: boolean): void
  writeData(id: number, piece: string, isLast: boolean): void
  /** A stream has joined those that wait. */
  onWait(): void
  /** Data was taken: the connection admits as much again, or one of its streams does. */
  credit(length: number): void
  updateWindow(id: number, increment: number): void
  /** Tells the peer that a stream is over, and forgets it. */
  reset(stream: SendingStream, code: number): void
  /** The same for a fault of the peer. */
  abortStream(stream: SendingStream, code: number, detail: string): void
  /** Both sides have ended a stream. */
  forget(stream: SendingStream): void
  toError(thrown: unknown): GatewayError
}

/**
 * The sending half of a stream: a head, data under flow control, trailers (RFC 9113 5.1, 5.2). What
 * does not fit into the windows waits here, as text, which is a copy of its own; a head waits for
 * the next flush, so that one without a body can say so.
 */
export abstract class SendingStream implements BodySink {
  /** 0 while the stream is not open. */
  id: number
  protected readonly session: StreamSession
  /** What the peer still admits; below zero where it has lowered its setting. */
  sendWindow: number
  /** Encoded when it leaves: blocks change the table in the order in which they are sent. */
  #head: string | undefined
  #pending = ''
  #trailers = ''
  #isEnding = false
  /** Octets of data that have left. */
  sentBytes = 0
  /** END_STREAM has been sent, or the stream was reset. */
  isSendClosed = false
  /** The owner was told that the peer is slow, and waits for `onSendDrain`. */
  isAwaitingDrain = false

  constructor(session: StreamSession, id: number, sendWindow: number) {
    this.session = session
    this.id = id
    this.sendWindow = sendWindow
  }

  /** Bytes that wait for the peer. */
  get backlog(): number {
    return this.#pending.length
  }

  /** Bytes of ours wait, or the connection is slow. */
  get needsDrain(): boolean {
    return !this.isSendClosed && (this.#hasUnsent || this.session.transport.needsDrain)
  }

  get #hasUnsent(): boolean {
    return this.#pending.length > 0 || this.#isEnding
  }

  protected abstract encodeHead(head: string): string

  /** Text as HTTP/1.1 has it. */
  protected setHead(head: string): void {
    this.#head = head
  }

  appendText(latin1: string): void {
    this.#pending += latin1
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    this.#pending += latin1Text(bytes, start, end)
  }

  endBody(trailers: string): void {
    this.#trailers = trailers
    this.#isEnding = true
  }

  flush(): boolean {
    this.send()
    if (!this.needsDrain) return true
    this.isAwaitingDrain = true
    this.session.waiting.add(this)
    this.session.onWait()
    return false
  }

  /** Sends what the windows admit now. */
  send(): void {
    if (this.isSendClosed) return
    if (this.#head !== undefined) this.#sendHead(this.#head)
    while (this.#pending.length > 0 && this.#sendData()) {
      // Each step sends one frame.
    }
    if (!this.#isEnding || this.isSendClosed || this.#pending.length > 0) return
    if (this.#trailers === '') this.session.writeData(this.id, '', true)
    else {
      const block = this.session.encoder.trailers(this.#trailers)
      this.session.writeHeaders(this.id, block, true)
    }
    this.#sendEnded()
  }

  #sendHead(head: string): void {
    this.#head = undefined
    if (this.id === 0) this.open()
    const isLast = this.#isEnding && this.#pending.length === 0 && this.#trailers === ''
    this.session.writeHeaders(this.id, this.encodeHead(head), isLast)
    if (isLast) this.#sendEnded()
  }

  /** One DATA frame; false where nothing may be sent now. */
  #sendData(): boolean {
    const { session } = this
    const room = Math.min(this.sendWindow, session.sendWindow, session.peerFrameSize)
    if (room <= 0 || session.transport.needsDrain) return false
    const pending = this.#pending
    const isWhole = pending.length <= room
    const piece = isWhole ? pending : pending.slice(0, room)
    this.#pending = isWhole ? '' : pending.slice(room)
    const isLast = isWhole && this.#isEnding && this.#trailers === ''
    this.sendWindow -= piece.length
    this.sentBytes += piece.length
    session.writeData(this.id, piece, isLast)
    if (isLast) this.#sendEnded()
    return true
  }

  #sendEnded(): void {
    this.isSendClosed = true
    this.onSendEnd()
  }

  /** Nothing more is sent, and what waits is dropped. */
  protected closeSending(): void {
    this.isSendClosed = true
    this.isAwaitingDrain = false
    this.session.waiting.delete(this)
    this.#head = undefined
    this.#pending = ''
    this.#trailers = ''
  }

  /** The first head is about to leave: gives the stream its number. */
  protected open(): void {
    // Streams of a peer have theirs.
  }

  /** END_STREAM has been written. */
  protected onSendEnd(): void {
    // For streams that must know.
  }

  /** What waited has been sent. */
  onSendDrain(): void {
    // For streams whose owners wait.
  }
}
