/** Serves gRPC calls on one HTTP/2 connection of a world. */
import type { Random } from '../../virtual-time/random.ts'
import type { World } from '../../virtual-time/world.ts'
import { appended } from '../bytes.ts'
import type { Server } from '../http1-upstream.ts'
import { Http2Peer } from '../http2-peer.ts'
import type { End } from '../network.ts'

/** What a service does with one call. */
export interface CallHandler {
  onMessage(message: Buffer): void
  /** The gateway sends nothing more. */
  onEnd(): void
  /** The gateway has reset the call, or the connection has ended before the call was over. */
  onLost(isReset: boolean): void
}

export interface GrpcOwner {
  readonly world: World
  readonly random: Random
  /** Begins a call. */
  onCall(call: GrpcCall): CallHandler
  fail(text: string): void
}

const prefixLength = 5
/** Error codes INTERNAL_ERROR and CANCEL. */
const resetCodes = [0x2, 0x8]

/** Writes a message with its prefix. */
function framed(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(prefixLength + message.length)
  bytes.writeUInt32BE(message.length, 1)
  bytes.set(message, prefixLength)
  return bytes
}

/** One call, from the side of the service. */
export class GrpcCall {
  readonly #service: GrpcService
  readonly #stream: number
  #hasHead = false
  #received = Buffer.alloc(0)
  handler: CallHandler | undefined
  /** Whether its service takes seconds to read a long body. */
  readonly isSlow: boolean
  /** Whether the service has ended the call, or has lost it. */
  isOver = false

  constructor(service: GrpcService, stream: number) {
    this.#service = service
    this.#stream = stream
    this.isSlow = service.isSlow
  }

  send(message: Uint8Array): void {
    this.sendBytes(framed(message))
  }

  /** Sends bytes that need not be a message. */
  sendBytes(bytes: Buffer): void {
    if (this.isOver) return
    this.#sendHead()
    this.#service.peer.sendData(this.#stream, bytes, false, () => {})
  }

  #sendHead(): void {
    if (this.#hasHead) return
    this.#hasHead = true
    const fields = [
      [':status', '200'],
      ['content-type', 'application/grpc+proto'],
    ] as const
    this.#service.peer.sendHead(this.#stream, fields, false)
  }

  /** Ends the call with a gRPC status, after everything that was sent. */
  finish(status: number): void {
    if (this.isOver) return
    this.#sendHead()
    this.isOver = true
    const { peer } = this.#service
    peer.sendData(this.#stream, Buffer.alloc(0), false, () => {
      peer.sendHead(this.#stream, [['grpc-status', String(status)]], true)
      peer.forget(this.#stream)
    })
  }

  reset(code: number): void {
    if (this.isOver) return
    this.isOver = true
    this.#service.peer.reset(this.#stream, code)
  }

  /** Ends the connection, and with it all its other calls. */
  breakConnection(): void {
    this.#service.breakConnection()
  }

  /** @throws Error if a message is not framed as gRPC */
  receive(bytes: Buffer): void {
    this.#received = appended(this.#received, bytes)
    while (this.#received.length >= prefixLength) {
      if (this.#received[0] !== 0) throw new Error('a compressed message')
      const end = prefixLength + this.#received.readUInt32BE(1)
      if (this.#received.length < end) return
      const message = this.#received.subarray(prefixLength, end)
      this.#received = this.#received.subarray(end)
      if (!this.isOver) this.handler?.onMessage(message)
    }
  }
}

export class GrpcService {
  readonly #server: Server
  readonly #owner: GrpcOwner
  readonly #calls = new Map<number, GrpcCall>()
  readonly peer: Http2Peer
  readonly isSlow: boolean

  constructor(server: Server, end: End, owner: GrpcOwner) {
    this.#server = server
    this.#owner = owner
    const { world, random } = owner
    const settings = {
      window: random.pick([100, 1_000, 65_535, 65_535, 1_000_000]),
      windowPauseMs: random.chance(0.8) ? 0 : 20,
    }
    this.isSlow = settings.windowPauseMs > 0
    this.peer = new Http2Peer('server', end, settings, {
      world,
      random,
      onHead: (stream, _fields, isLast) => this.#onHead(stream, isLast),
      onData: (stream, bytes, isLast) => this.#onData(stream, bytes, isLast),
      onReset: (stream) => this.#lose(stream, true),
      onGoAway: () => {},
      onClose: () => this.#leave(),
      fail: (text) => owner.fail(`${server.name}: ${text}`),
    })
  }

  #onHead(stream: number, isLast: boolean): void {
    const call = new GrpcCall(this, stream)
    this.#calls.set(stream, call)
    call.handler = this.#owner.onCall(call)
    if (isLast) call.handler.onEnd()
  }

  #onData(stream: number, bytes: Buffer, isLast: boolean): void {
    const call = this.#calls.get(stream)
    if (call === undefined) return
    try {
      call.receive(bytes)
    } catch (error) {
      this.#owner.fail(`${this.#server.name} cannot read a call: ${error}`)
    }
    if (!isLast) return
    call.handler?.onEnd()
    this.#calls.delete(stream)
  }

  #lose(stream: number, isReset: boolean): void {
    const call = this.#calls.get(stream)
    this.#calls.delete(stream)
    if (call === undefined) return
    call.handler?.onLost(isReset)
    call.isOver = true
  }

  breakConnection(): void {
    this.#owner.world.note(`${this.#server.name} ends a connection`)
    this.peer.close(this.#owner.random.pick(['close', 'reset'] as const))
    this.#leave()
  }

  #leave(): void {
    for (const stream of [...this.#calls.keys()]) this.#lose(stream, false)
    this.#server.open--
  }
}

/** Returns an error code with which a service resets a call. */
export const randomResetCode = (random: Random): number => random.pick(resetCodes)
