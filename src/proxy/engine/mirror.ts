import type { GatewayError } from '../../errors.ts'
import type { EngineParts } from './engine-parts.ts'
import { type BodyTap, MessageBody } from './message-body.ts'
import { ResponseHeadView } from './response-head.ts'
import { Timer, type TimerOwner } from './timer-wheel.ts'
import type { UpstreamAddress } from './types.ts'
import type { UpstreamConnection, UpstreamUser } from './upstream-connection.ts'

/** Bytes that may wait for a mirror; one that falls further behind is given up. */
const backlogLimit = 256 * 1024
/** Milliseconds from start to the end of its response; then a mirror is given up. */
const patienceMs = 30_000

/** Copies of one request to other addresses. Nothing that happens to them reaches the exchange. */
export class Mirror implements BodyTap {
  readonly #copies: MirrorCopy[]

  constructor(
    parts: EngineParts,
    addresses: readonly UpstreamAddress[],
    head: string,
    isChunked: boolean,
    isHead: boolean,
  ) {
    this.#copies = addresses.map(
      (address) => new MirrorCopy(parts, address, head, isChunked, isHead),
    )
  }

  onSent(bytes: Buffer, start: number, end: number): void {
    for (const copy of this.#copies) copy.send(bytes, start, end)
  }

  onSentEnd(): void {
    for (const copy of this.#copies) copy.sendEnd()
  }

  onAbandon(): void {
    for (const copy of this.#copies) copy.abandon()
  }
}

class MirrorCopy implements UpstreamUser, TimerOwner {
  readonly #parts: EngineParts
  readonly response = undefined
  readonly responseHead = new ResponseHeadView()
  readonly responseBody: MessageBody
  readonly isHead: boolean
  readonly upgrade = undefined
  readonly clientSocket = undefined
  readonly #isChunked: boolean
  readonly #timer = new Timer(this)
  #connection: UpstreamConnection | undefined
  #isReady = false
  /** Text and bytes that wait for the connection. */
  #backlog: (string | Buffer)[] = []
  #backlogBytes = 0
  isRequestSent = false

  constructor(
    parts: EngineParts,
    address: UpstreamAddress,
    head: string,
    isChunked: boolean,
    isHead: boolean,
  ) {
    this.#parts = parts
    this.isHead = isHead
    this.#isChunked = isChunked
    this.responseBody = new MessageBody(parts.reader, this)
    this.#backlog.push(head)
    parts.timers.arm(this.#timer, patienceMs)
    const connection = parts.pools.acquire(address, this, 0, false)
    this.#connection = connection
    if (connection.isIdle) connection.use(this)
  }

  send(bytes: Buffer, start: number, end: number): void {
    if (this.#connection === undefined) return
    if (this.#backlogBytes + this.#waiting() > backlogLimit) {
      this.#giveUp()
      return
    }
    if (this.#isChunked) this.#put(`${(end - start).toString(16)}\r\n`)
    this.#put(Buffer.from(bytes.subarray(start, end)))
    if (this.#isChunked) this.#put('\r\n')
    if (this.#isReady) this.#connection.transport.flush()
  }

  sendEnd(): void {
    if (this.isRequestSent) return
    this.isRequestSent = true
    if (this.#isChunked) this.#put('0\r\n\r\n')
    if (this.#isReady) this.#connection?.transport.flush()
  }

  abandon(): void {
    if (!this.isRequestSent) this.#giveUp()
  }

  resumeBody(): void {
    this.#connection?.resumeBody()
  }

  onUpstreamReady(connection: UpstreamConnection): void {
    this.#connection = connection
    this.#isReady = true
    const backlog = this.#backlog
    this.#backlog = []
    this.#backlogBytes = 0
    for (const part of backlog) this.#put(part)
    connection.transport.flush()
  }

  onInterim(): void {
    // Nobody waits for it.
  }

  onResponseHead(): void {
    this.responseBody.discard()
  }

  onReadEnd(): void {
    // Nothing is written anywhere.
  }

  onResponseBody(connection: UpstreamConnection): void {
    if (!this.responseBody.ended) return
    this.#parts.timers.disarm(this.#timer)
    this.#connection = undefined
    connection.release()
  }

  onUpstreamFailure(_connection: UpstreamConnection, _error: GatewayError): void {
    this.#parts.timers.disarm(this.#timer)
    this.#connection = undefined
    this.#backlog = []
  }

  onUpstreamDrain(): void {
    // The transport holds what waits; `send` looks at how much that is.
  }

  onTunnelBytes(): void {
    // Mirrors never ask for an upgrade.
  }

  onTunnelEnd(): void {
    // Mirrors never ask for an upgrade.
  }

  onTimer(): void {
    this.#giveUp()
  }

  #waiting(): number {
    return this.#connection?.transport.socket.writableLength ?? 0
  }

  #put(part: string | Buffer): void {
    const transport = this.#connection?.transport
    if (!this.#isReady || transport === undefined) {
      this.#backlog.push(part)
      this.#backlogBytes += part.length
    } else if (typeof part === 'string') transport.appendText(part)
    else transport.appendBytes(part, 0, part.length)
  }

  #giveUp(): void {
    this.#parts.timers.disarm(this.#timer)
    this.#backlog = []
    const connection = this.#connection
    this.#connection = undefined
    connection?.close()
  }
}
