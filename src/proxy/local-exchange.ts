import type { Body, Exchange, HeaderFields, ResponseHead } from '../exchange/exchange.ts'
import type { LocalResponse } from './rescue.ts'

/** Header fields of a response that the gateway makes itself. */
export class FieldPairs implements HeaderFields {
  pairs: (readonly [string, string])[]

  constructor(pairs: readonly (readonly [string, string])[]) {
    this.pairs = [...pairs]
  }

  get(name: string): string | undefined {
    return this.getAll(name)[0]
  }

  getAll(name: string): string[] {
    const lower = name.toLowerCase()
    return this.pairs.filter(([key]) => key.toLowerCase() === lower).map(([, value]) => value)
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  set(name: string, value: string): void {
    this.remove(name)
    this.add(name, value)
  }

  add(name: string, value: string): void {
    this.pairs.push([name, value])
  }

  remove(name: string): void {
    const lower = name.toLowerCase()
    this.pairs = this.pairs.filter(([key]) => key.toLowerCase() !== lower)
  }

  entries(): Iterable<readonly [string, string]> {
    return this.pairs
  }
}

/** An exchange as response steps see it while the gateway's own answer is not sent yet. */
export class LocalExchange implements Exchange {
  readonly #exchange: Exchange
  readonly #fields: FieldPairs
  readonly #body: LocalResponse['body']
  readonly response: ResponseHead

  constructor(exchange: Exchange, { status, headers, body }: LocalResponse) {
    this.#exchange = exchange
    this.#fields = new FieldPairs(headers)
    this.#body = body
    this.response = { status, headers: this.#fields }
  }

  /** What is to be sent after the steps have run. */
  finished(): LocalResponse {
    return { status: this.response.status, headers: this.#fields.pairs, body: this.#body }
  }

  get request() {
    return this.#exchange.request
  }
  get requestBody() {
    return this.#exchange.requestBody
  }
  get responseBody(): Body | undefined {
    return undefined
  }
  get source() {
    return this.#exchange.source
  }
  get local() {
    return this.#exchange.local
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
