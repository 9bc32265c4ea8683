/** gRPC calls of policies to backends: unary calls and bidirectional streams. */

import type { CallListener } from '../../../engines/http/contracts/calls.ts'
import { bufferOf } from '../../../ground/base/buffers.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type {
  GrpcCallout,
  GrpcStream,
  GrpcStreamCallout,
  GrpcStreamListener,
  HeaderFields,
} from '../../../ground/exchange/exchange.ts'
import { toGatewayError } from '../request/error-response.ts'
import { fieldOf, frameMessage, MessageReader, readStatus } from './grpc-framing.ts'
import type { CalloutOpener, OpenCallout } from './opener.ts'

const headers = [
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
] as const

/** Time that a server has to end a stream after the gateway has ended its side; then it is reset. */
const lingerMs = 5_000

/**
 * Makes a unary call. Rejects with `callout_failed`, or with the reason why the backend cannot be reached.
 */
export function callGrpc(opener: CalloutOpener, callout: GrpcCallout): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    let response: Uint8Array | undefined
    const stream = new CalloutStream(callout.timeoutMs, {
      onMessage: (bytes) => {
        response ??= bytes
      },
      onDrain: () => {},
      onEnd: (error) => {
        if (error !== undefined) reject(error)
        else if (response === undefined) reject(new GatewayError('callout_failed', 'no answer'))
        else resolve(response)
      },
    })
    stream.expect(true)
    open(opener, callout, frameMessage(callout.message), stream)
  })
}

export function streamGrpc(opener: CalloutOpener, callout: GrpcStreamCallout): GrpcStream {
  const stream = new CalloutStream(callout.timeoutMs, callout.listener)
  open(opener, callout, undefined, stream)
  return stream
}

/** Opens a call. Without a body, it stays open for messages. */
function open(
  opener: CalloutOpener,
  call: Pick<GrpcStreamCallout, 'target' | 'path' | 'subtype' | 'defaultTls'> &
    Pick<GrpcCallout, 'exchange' | 'isOnce'>,
  body: Uint8Array | undefined,
  stream: CalloutStream,
): void {
  const { target, path, subtype, defaultTls, exchange: cause, isOnce } = call
  const request = { target, method: 'POST', path, headers, body, subtype, defaultTls, cause }
  opener.open({ ...request, isGrpc: true, isOnce }, stream).then(
    (opened) => stream.opened(opened),
    (error: unknown) => stream.onFailure(toGatewayError(error)),
  )
}

class CalloutStream implements GrpcStream, CallListener {
  readonly #listener: GrpcStreamListener
  readonly #reader = new MessageReader()
  #timeoutMs: number
  #open: OpenCallout | undefined
  /** Messages that were sent before the call was open. */
  #waiting: Buffer[] = []
  #isExpecting = false
  #isPaused = false
  #isOver = false
  #status = 0
  /** The status of a trailers-only response. */
  #early: ReturnType<typeof readStatus>

  constructor(timeoutMs: number, listener: GrpcStreamListener) {
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
    // `send` has returned false until now, so tell the sender to continue.
    if (hasRoom) this.#listener.onDrain()
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

  /** Restarts the timeout. Called after any activity. */
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

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    const open = this.#open
    if (open === undefined) return
    open.call.end()
    // What the server still sends is read and ignored, so that its end is seen.
    open.call.resume()
    open.call.limit(lingerMs)
    open.end(this.#status || undefined)
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
    const messages = this.#reader.read(bufferOf(bytes))
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
    const isWrapped = error?.row.source === 'upstream' && error.code !== 'callout_failed'
    this.#listener.onEnd(
      isWrapped ? new GatewayError('callout_failed', error.message, error) : error,
    )
  }
}
