/** gRPC calls of policies to backends: unary ones, and streams of messages both ways. */

import type { CallListener } from '../../engine/contracts/calls.ts'
import { GatewayError } from '../../errors/index.ts'
import type {
  GrpcCallout,
  GrpcStream,
  GrpcStreamCallout,
  GrpcStreamListener,
  HeaderFields,
} from '../../exchange/exchange.ts'
import { fieldOf, frameMessage, MessageReader, readStatus } from './grpc-framing.ts'
import type { CalloutOpener, OpenCallout } from './opener.ts'

const headers = [
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
] as const

export class GrpcCallouts {
  readonly #opener: CalloutOpener

  constructor(opener: CalloutOpener) {
    this.#opener = opener
  }

  /** Rejects with `callout_failed`, or with what keeps the backend from being reached. */
  call({ target, path, message, timeoutMs, exchange, subtype }: GrpcCallout): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      let answer: Uint8Array | undefined
      const stream = new CalloutStream({
        timeoutMs,
        listener: {
          onMessage: (bytes) => {
            answer ??= bytes
          },
          onDrain: () => {},
          onEnd: (error) => {
            if (error !== undefined) reject(error)
            else if (answer === undefined) reject(new GatewayError('callout_failed', 'no answer'))
            else resolve(answer)
          },
        },
      })
      stream.expect(true)
      const body = frameMessage(message)
      const request = { target, method: 'POST', path, headers, body, cause: exchange }
      this.#start({ ...request, isGrpc: true, subtype: subtype ?? 'Http' }, stream)
    })
  }

  stream(callout: GrpcStreamCallout): GrpcStream {
    const { target, path, exchange, subtype, timeoutMs, isPicker, listener } = callout
    const stream = new CalloutStream({ timeoutMs, listener })
    const called = { target, method: 'POST', path, headers, body: undefined, cause: exchange }
    const request = { ...called, ...(isPicker && { isPicker }) }
    this.#start({ ...request, isGrpc: true, subtype: subtype ?? 'Http' }, stream)
    return stream
  }

  #start(request: Parameters<CalloutOpener['open']>[0], stream: CalloutStream): void {
    this.#opener.open(request, stream).then(
      (open) => stream.opened(open),
      (error: unknown) => {
        const bug = new GatewayError('bug', undefined, error)
        stream.failedToOpen(error instanceof GatewayError ? error : bug)
      },
    )
  }
}

interface StreamOptions {
  readonly timeoutMs: number
  readonly listener: GrpcStreamListener
}

class CalloutStream implements GrpcStream, CallListener {
  readonly #listener: GrpcStreamListener
  readonly #reader = new MessageReader()
  #timeoutMs: number
  #open: OpenCallout | undefined
  /** Messages from before the call was open. */
  #waiting: Buffer[] = []
  #isExpecting = false
  #isPaused = false
  #isOver = false
  #status = 0
  /** Trailers that came as a head, because nothing else did. */
  #early: ReturnType<typeof readStatus>

  constructor({ timeoutMs, listener }: StreamOptions) {
    this.#timeoutMs = timeoutMs
    this.#listener = listener
  }

  opened(open: OpenCallout): void {
    if (this.#isOver) {
      open.call.close()
      open.end()
      return
    }
    this.#open = open
    this.#timeoutMs = open.timeoutMs ?? this.#timeoutMs
    const waiting = this.#waiting
    this.#waiting = []
    let hasRoom = waiting.length > 0
    for (const message of waiting) hasRoom = open.call.write(message)
    if (this.#isPaused) open.call.pause()
    this.#watch()
    // Whoever was told to wait for the connection goes on; one that has still to be made tells so.
    if (hasRoom) this.#listener.onDrain()
  }

  failedToOpen(error: GatewayError): void {
    this.#end(error)
  }

  send(message: Uint8Array): boolean {
    if (this.#isOver) return true
    const framed = frameMessage(message)
    this.#watch()
    if (this.#open !== undefined) return this.#open.call.write(framed)
    this.#waiting.push(framed)
    return false
  }

  expect(isOwed: boolean): void {
    this.#isExpecting = isOwed
    this.#watch()
  }

  /** Something has moved: the time of silence begins anew. */
  #watch(): void {
    this.#open?.call.limit(this.#isExpecting && !this.#isPaused ? this.#timeoutMs : 0)
  }

  pause(): void {
    this.#isPaused = true
    this.#open?.call.pause()
    this.#watch()
  }

  resume(): void {
    this.#isPaused = false
    this.#open?.call.resume()
    this.#watch()
  }

  close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#open?.call.close()
    this.#open?.end(this.#status || undefined)
  }

  onHead(status: number, head: HeaderFields): void {
    this.#status = status
    this.#early = readStatus((name) => head.get(name))
    const type = head.get('content-type') ?? ''
    if (status !== 200) this.#abort(`the server answered with HTTP status ${status}`)
    else if (!type.startsWith('application/grpc')) {
      this.#abort('the server does not answer in gRPC')
    }
  }

  onBytes(bytes: Uint8Array): void {
    if (this.#isOver) return
    const messages = this.#reader.read(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
    if (typeof messages === 'string') {
      this.#abort(messages)
      return
    }
    if (messages.length > 0) this.#watch()
    for (const message of messages) {
      if (this.#isOver) return
      this.#listener.onMessage(message)
    }
  }

  onDrain(): void {
    if (!this.#isOver) this.#listener.onDrain()
  }

  onEnd(trailers = ''): void {
    const status = readStatus((name) => fieldOf(trailers, name)) ?? this.#early
    if (status?.code === 0 && !this.#reader.isInside) this.#end(undefined)
    else if (status === undefined) this.#fail('the server ended the call without a status')
    else this.#fail(`the server ended the call with status ${status.code}: ${status.message}`)
  }

  onFailure(error: GatewayError): void {
    this.#end(error)
  }

  #abort(detail: string): void {
    this.#open?.call.close()
    this.#fail(detail)
  }

  #fail(detail: string): void {
    this.#end(new GatewayError('callout_failed', detail))
  }

  #end(error: GatewayError | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#open?.call.limit(0)
    this.#open?.end(this.#status || undefined, error)
    const isTold = error === undefined || !isOfUpstream(error)
    this.#listener.onEnd(isTold ? error : new GatewayError('callout_failed', error.message, error))
  }
}

const isOfUpstream = ({ row, code }: GatewayError): boolean =>
  row.source === 'upstream' && code !== 'callout_failed'
