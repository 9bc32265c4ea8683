/** The request of a client as it was when it came: its exchange may be over, and another one's by now. */
import { CopiedExchange } from '../../exchange/derived.ts'
import type { RequestHead } from '../../exchange/exchange.ts'
import { Learned } from '../../exchange/learned.ts'
import { FieldPairs, MemoryBody } from '../../exchange/memory-message.ts'
import type { Walk } from '../walk.ts'

export class ClientView extends CopiedExchange {
  readonly #walk: Walk
  readonly request: RequestHead
  readonly requestBody = new MemoryBody(undefined)
  readonly learned: Learned
  readonly facts: Map<string, unknown>

  constructor(walk: Walk) {
    const { exchange } = walk
    super(exchange)
    this.#walk = walk
    const { method, scheme, authority, path, query, version, headers } = exchange.request
    const fields = new FieldPairs([...headers.entries()])
    this.request = { method, scheme, authority, path, query, version, headers: fields }
    this.learned = Object.assign(new Learned(), exchange.learned)
    this.facts = new Map(exchange.facts)
  }

  /** Read from the connection, so known as long as that serves this request. */
  get peerCertificate() {
    return this.#walk.over ? undefined : this.#walk.exchange.peerCertificate
  }

  get isOver(): boolean {
    return this.#walk.over
  }
}
