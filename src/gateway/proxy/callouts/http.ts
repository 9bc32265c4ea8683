/** HTTP calls of policies to backends: one request and one response. */

import type { CallListener } from '../../../engines/http/contracts/calls.ts'
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type {
  HeaderFields,
  HttpCallout,
  HttpCalloutResponse,
} from '../../../ground/exchange/exchange.ts'
import type { CalloutOpener, OpenCallout } from './opener.ts'

/** Makes one call. Rejects with `callout_failed`, or with the reason why the backend cannot be reached. */
export function callHttp(opener: CalloutOpener, call: HttpCallout): Promise<HttpCalloutResponse> {
  return new Promise((resolve, reject) => {
    const response = new ResponseReader(call, resolve, reject)
    const { target, method, path, headers, body, exchange, subtype } = call
    const request = { target, method, path, headers, body, subtype, cause: exchange, isGrpc: false }
    opener.open(request, response).then((open) => response.opened(open), reject)
  })
}

/** Buffers one whole response. */
class ResponseReader implements CallListener {
  readonly #limits: HttpCallout
  readonly #resolve: (response: HttpCalloutResponse) => void
  readonly #reject: (error: unknown) => void
  #open: OpenCallout | undefined
  #status = 0
  #headers: [string, string][] = []
  readonly #body = new GrowingBytes()
  /** Set once the call is over, which may be before `opened` is called. */
  #ended: { readonly error: GatewayError | undefined } | undefined

  constructor(
    limits: HttpCallout,
    resolve: (response: HttpCalloutResponse) => void,
    reject: (error: unknown) => void,
  ) {
    this.#limits = limits
    this.#resolve = resolve
    this.#reject = reject
  }

  opened(open: OpenCallout): void {
    this.#open = open
    if (this.#ended === undefined) open.call.limit(open.timeoutMs ?? this.#limits.timeoutMs)
    else open.end(this.#status, this.#ended.error)
  }

  onHead(status: number, headers: HeaderFields): void {
    this.#status = status
    for (const [name, value] of headers.entries()) this.#headers.push([name, value])
  }

  onBytes(bytes: Uint8Array): void {
    if (this.#ended !== undefined) return
    const { maxResponseBytes } = this.#limits
    if (this.#body.length + bytes.length <= maxResponseBytes) {
      this.#body.add(bytes, 0, bytes.length)
    } else {
      this.#open?.call.close()
      const detail = `the answer is larger than ${maxResponseBytes} bytes`
      this.#end(new GatewayError('callout_failed', detail))
    }
  }

  onEnd(): void {
    this.#end(undefined)
  }

  onFailure(error: GatewayError): void {
    this.#end(error)
  }

  onDrain(): void {
    // Nothing to do: the call already has the whole request body.
  }

  #end(error: GatewayError | undefined): void {
    if (this.#ended !== undefined) return
    this.#ended = { error }
    this.#open?.end(this.#status, error)
    if (error === undefined) {
      const body = this.#body.content
      this.#resolve({ status: this.#status, headers: this.#headers, body })
    } else if (error.code === 'callout_failed') this.#reject(error)
    else this.#reject(new GatewayError('callout_failed', error.message, error))
  }
}
