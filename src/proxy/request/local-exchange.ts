import { FollowingExchange } from '../../exchange/derived.ts'
import type { Exchange, ResponseHead } from '../../exchange/exchange.ts'
import { FieldPairs, MemoryBody } from '../../exchange/memory-message.ts'
import type { LocalResponse } from './error-response.ts'

/** An exchange as response steps see it while the gateway's own answer is not sent yet. */
export class LocalExchange extends FollowingExchange {
  readonly #fields: FieldPairs
  readonly responseBody: MemoryBody
  readonly response: ResponseHead

  constructor(exchange: Exchange, { status, headers, body }: LocalResponse) {
    super(exchange)
    this.#fields = new FieldPairs(headers)
    this.responseBody = new MemoryBody(body)
    this.response = { status, headers: this.#fields }
  }

  /** What is to be sent after the steps have run. */
  finished(): LocalResponse {
    return {
      status: this.response.status,
      headers: this.#fields.pairs,
      body: this.responseBody.content,
    }
  }

  get request() {
    return this.origin.request
  }
  get requestBody() {
    return this.origin.requestBody
  }
}
