import type { Exchange, RequestHead } from '../../exchange/exchange.ts'
import { type FieldPairs, MemoryBody } from '../../exchange/memory-message.ts'

/** A request that the gateway makes of the client's for one target, as backend policies see it. */
export class TargetExchange implements Exchange {
  readonly #client: Exchange
  readonly request: RequestHead & { readonly headers: FieldPairs }
  readonly requestBody: MemoryBody
  readonly response = undefined
  readonly responseBody = undefined

  constructor(
    client: Exchange,
    head: Pick<RequestHead, 'method' | 'scheme' | 'authority' | 'path' | 'query'>,
    headers: FieldPairs,
    body: Uint8Array | undefined,
  ) {
    this.#client = client
    this.request = { ...head, version: '1.1', headers }
    this.requestBody = new MemoryBody(body)
  }

  get source() {
    return this.#client.source
  }
  get rawSource() {
    return this.#client.rawSource
  }
  get local() {
    return this.#client.local
  }
  get peerCertificate() {
    return this.#client.peerCertificate
  }
  get backend() {
    return this.#client.backend
  }
  get bufferLimit() {
    return this.#client.bufferLimit
  }
  get startedAt() {
    return this.#client.startedAt
  }
  get isOver() {
    return this.#client.isOver
  }
  get place() {
    return this.#client.place
  }
  get learned() {
    return this.#client.learned
  }
  get facts() {
    return this.#client.facts
  }
}
