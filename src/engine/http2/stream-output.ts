import type { BodySink } from '../bytes/body-sink.ts'
import { latin1Text } from '../bytes/latin1.ts'
import type { Transport } from '../sockets/transport.ts'
import type { HpackEncoder } from './hpack-encoder.ts'

/** What the output of a stream needs from that of its connection. */
export interface ConnectionOutput {
  readonly transport: Transport
  readonly encoder: HpackEncoder
  /** Streams with something to send, in the order in which they may. */
  readonly waiting: Set<StreamOutput>
  /** What the peer admits on the whole connection. */
  readonly sendWindow: number
  /** Largest frame that is sent. */
  readonly peerFrameSize: number
  writeHeaders(id: number, block: string, isLast: boolean): void
  writeData(id: number, piece: string, isLast: boolean): void
  /** A stream has joined those that wait. */
  onWait(): void
}

/** The stream that an output belongs to. */
export interface OutputStream {
  /** 0 while the stream is not open. */
  readonly id: number
  encodeHead(head: string): string
  /** The first head may leave now; asked while the stream is not open. */
  mayOpen(): boolean
  /** The first head is about to leave: gives the stream its number. */
  open(): void
  /** END_STREAM has been written. */
  onSendEnd(): void
  /** What waited has been sent. */
  onSendDrain(): void
}

/**
 * The sending half of a stream: a head, data under flow control, trailers (RFC 9113 5.1, 5.2). What
 * does not fit into the windows waits here, as text, which is a copy of its own. The head waits for
 * the next flush, so that END_STREAM can be set on it if there is no body.
 */
export class StreamOutput implements BodySink {
  readonly #connection: ConnectionOutput
  readonly #stream: OutputStream
  /** What the peer still admits; below zero if it has lowered its setting. */
  sendWindow: number
  /** Encoded when it leaves: blocks change the table in the order in which they are sent. */
  #head: string | undefined
  #pending = ''
  #trailers = ''
  #isEnding = false
  /** Ignores `endBody`: an extended CONNECT stays open behind its head, until `end`. */
  withholdsEnd = false
  /** Octets of data that have left. */
  sentBytes = 0
  /** END_STREAM has been sent, or the stream was reset. */
  isClosed = false
  /** The stream was told that the peer is slow, and waits for `onSendDrain`. */
  isAwaitingDrain = false

  constructor(connection: ConnectionOutput, stream: OutputStream, sendWindow: number) {
    this.#connection = connection
    this.#stream = stream
    this.sendWindow = sendWindow
  }

  /** Bytes that wait for the peer. */
  get backlog(): number {
    return this.#pending.length
  }

  /** Bytes of ours wait, or the connection is slow. */
  get needsDrain(): boolean {
    return !this.isClosed && (this.#hasUnsent || this.#connection.transport.needsDrain)
  }

  get #hasUnsent(): boolean {
    return this.#pending.length > 0 || this.#isEnding
  }

  /** Text as HTTP/1.1 has it. */
  setHead(head: string): void {
    this.#head = head
  }

  appendText(latin1: string): void {
    this.#pending += latin1
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    this.#pending += latin1Text(bytes, start, end)
  }

  endBody(trailers: string): void {
    if (this.withholdsEnd) return
    this.#trailers = trailers
    this.#isEnding = true
  }

  flush(): boolean {
    if (this.#stream.id === 0 && !this.#stream.mayOpen()) return true
    this.send()
    if (!this.needsDrain) return true
    this.isAwaitingDrain = true
    this.#connection.waiting.add(this)
    this.#connection.onWait()
    return false
  }

  /** Ends the stream behind what was appended. */
  end(): void {
    this.withholdsEnd = false
    this.endBody('')
    this.flush()
  }

  /** What waited has been sent: tells the stream if it waits for that. */
  drained(): void {
    if (!this.isAwaitingDrain) return
    this.isAwaitingDrain = false
    this.#stream.onSendDrain()
  }

  /** Sends what the windows admit now. */
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
    if (this.#stream.id === 0) this.#stream.open()
    const isLast = this.#isEnding && this.#pending.length === 0 && this.#trailers === ''
    this.#connection.writeHeaders(this.#stream.id, this.#stream.encodeHead(head), isLast)
    if (isLast) this.#sendEnded()
  }

  /** One DATA frame; false where nothing may be sent now. */
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

  /** Nothing more is sent, and what waits is dropped. */
  close(): void {
    this.isClosed = true
    this.isAwaitingDrain = false
    this.#connection.waiting.delete(this)
    this.#head = undefined
    this.#pending = ''
    this.#trailers = ''
  }
}
