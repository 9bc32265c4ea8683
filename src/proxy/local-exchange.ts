import type {
  Body,
  BodyTransform,
  BufferedBody,
  Exchange,
  HeaderFields,
  ResponseHead,
} from '../exchange/exchange.ts'
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

  lines(name: string): string | readonly string[] | undefined {
    const values = this.getAll(name)
    return values.length < 2 ? values[0] : values
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

/** The body of an answer of the gateway: in memory from the start. */
class LocalBody implements Body {
  readonly trailers = ''
  content: LocalResponse['body']

  constructor(content: LocalResponse['body']) {
    this.content = content
  }

  get length(): number {
    return this.#bytes.length
  }

  get known(): BufferedBody {
    return { complete: true, bytes: this.#bytes }
  }

  get #bytes(): Uint8Array {
    return typeof this.content === 'string'
      ? Buffer.from(this.content)
      : (this.content ?? new Uint8Array())
  }

  buffer(maxBytes: number): Promise<BufferedBody> {
    const bytes = this.#bytes
    return Promise.resolve(
      bytes.length > maxBytes
        ? { complete: false, prefix: bytes.subarray(0, maxBytes) }
        : { complete: true, bytes },
    )
  }

  replace(bytes: Uint8Array): void {
    this.content = bytes
  }

  through(transform: BodyTransform): void {
    const parts: Uint8Array[] = []
    const emit = (bytes: Uint8Array) => parts.push(bytes)
    transform.push(this.#bytes, emit)
    transform.end(emit)
    this.content = Buffer.concat(parts)
  }

  record(): void {
    // It stays in memory anyway.
  }
}

/** An exchange as response steps see it while the gateway's own answer is not sent yet. */
export class LocalExchange implements Exchange {
  readonly #exchange: Exchange
  readonly #fields: FieldPairs
  readonly responseBody: LocalBody
  readonly response: ResponseHead

  constructor(exchange: Exchange, { status, headers, body }: LocalResponse) {
    this.#exchange = exchange
    this.#fields = new FieldPairs(headers)
    this.responseBody = new LocalBody(body)
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
