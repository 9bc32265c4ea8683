/** The request of a client as it was when it came: its exchange may be over, and serve another one. */
import { CopiedExchange, type CopiedFields } from '../../../exchange/derived.ts'
import type { Exchange, PeerCertificate, RequestHead } from '../../../exchange/exchange.ts'
import { Learned } from '../../../exchange/learned.ts'
import { FieldPairs, MemoryBody } from '../../../exchange/memory-message.ts'

type Copied = CopiedFields & Pick<Exchange, 'peerCertificate'>

type Fact = readonly [name: string, value: unknown]

/** A request in plain data, so that it can be sent to another thread. */
export interface ClientRecord extends Omit<Copied, 'startedAt'> {
  readonly head: Omit<RequestHead, 'headers'>
  readonly fields: readonly (readonly [string, string])[]
  readonly credentials: readonly string[]
  /** What policies have learned, the credentials that they have verified included. */
  readonly learned: Partial<Learned>
  readonly facts: readonly Fact[]
}

interface Parts extends Copied, Omit<ClientRecord, keyof Copied> {
  readonly isOver: () => boolean
}

export class ClientView extends CopiedExchange {
  readonly request: RequestHead & { readonly headers: FieldPairs }
  readonly requestBody = new MemoryBody(undefined)
  readonly peerCertificate: PeerCertificate | undefined
  /** Names of headers by which the client itself has sent credentials. */
  readonly credentials: readonly string[]
  readonly learned: Learned
  readonly facts: Map<string, unknown>
  readonly #isOver: () => boolean

  private constructor(parts: Parts) {
    super(parts)
    this.request = { ...parts.head, headers: new FieldPairs(parts.fields) }
    this.credentials = parts.credentials
    this.peerCertificate = parts.peerCertificate
    this.learned = Object.assign(new Learned(), parts.learned)
    this.facts = new Map(parts.facts)
    this.#isOver = parts.isOver
  }

  /** `credentials`: names of headers by which the client has sent some. */
  static of(exchange: Exchange, credentials: readonly string[], isOver: () => boolean): ClientView {
    const { request, learned, facts } = exchange
    const { source, rawSource, local, place, backend, bufferLimit, startedAt } = exchange
    const { peerCertificate } = exchange
    const copied = { source, rawSource, local, place, backend, bufferLimit, startedAt }
    const fields = [...request.headers.entries()]
    const parts = { head: headOf(request), fields, credentials, learned, facts: [...facts], isOver }
    return new ClientView({ ...copied, peerCertificate, ...parts })
  }

  /** The request that another thread has received. */
  static from(record: ClientRecord): ClientView {
    return new ClientView({ ...record, startedAt: performance.now(), isOver: () => false })
  }

  get isOver(): boolean {
    return this.#isOver()
  }

  record(): ClientRecord {
    const { source, rawSource, local, place, backend, bufferLimit, peerCertificate } = this
    return {
      head: headOf(this.request),
      fields: this.request.headers.pairs,
      credentials: this.credentials,
      learned: { ...this.learned },
      // Other values belong to steps of this thread.
      facts: [...this.facts].filter(
        ([, value]) => typeof value === 'string' || typeof value === 'number',
      ),
      source: { address: source.address, port: source.port },
      rawSource: { address: rawSource.address, port: rawSource.port },
      local: { address: local.address, port: local.port },
      place: { ...place },
      backend: backend && { name: backend.name, type: backend.type, protocol: backend.protocol },
      bufferLimit,
      peerCertificate,
    }
  }
}

function headOf({ method, scheme, authority, path, query, version }: RequestHead) {
  return { method, scheme, authority, path, query, version }
}
