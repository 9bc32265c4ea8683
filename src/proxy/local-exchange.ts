import type { Exchange, ResponseHead } from '../exchange/exchange.ts'
import { FieldPairs, MemoryBody } from '../exchange/memory-message.ts'
import type { LocalResponse } from './rescue.ts'

/** An exchange as response steps see it while the gateway's own answer is not sent yet. */
export class LocalExchange implements Exchange {
  readonly #exchange: Exchange
  readonly #fields: FieldPairs
  readonly responseBody: MemoryBody
  readonly response: ResponseHead

  constructor(exchange: Exchange, { status, headers, body }: LocalResponse) {
    this.#exchange = exchange
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
    return this.#exchange.request
  }
  get requestBody() {
    return this.#exchange.requestBody
  }
  get source() {
    return this.#exchange.source
  }
  get rawSource() {
    return this.#exchange.rawSource
  }
  get local() {
    return this.#exchange.local
  }
  get peerCertificate() {
    return this.#exchange.peerCertificate
  }
  get backend() {
    return this.#exchange.backend
  }
  get bufferLimit() {
    return this.#exchange.bufferLimit
  }
  get startedAt() {
    return this.#exchange.startedAt
  }
  get isOver() {
    return this.#exchange.isOver
  }
  get place() {
    return this.#exchange.place
  }
  get learned() {
    return this.#exchange.learned
  }
  get facts() {
    return this.#exchange.facts
  }
}
