/** A copy of a client's request. The exchange itself may end and its object serve another request. */
import { CopiedExchange, type CopiedFields } from '../../../exchange/derived.ts'
import type { Exchange, PeerCertificate, RequestHead } from '../../../exchange/exchange.ts'
import { Learned } from '../../../exchange/learned.ts'
import { FieldPairs, MemoryBody } from '../../../exchange/memory-message.ts'

type CopiedProperties = CopiedFields & Pick<Exchange, 'peerCertificate'>

type Extension = readonly [name: string, value: unknown]

/** A request as plain data that can be sent to another thread. */
export interface ClientRecord extends Omit<CopiedProperties, 'startedAt'> {
  readonly head: Omit<RequestHead, 'headers'>
  readonly fields: readonly (readonly [string, string])[]
  readonly credentials: readonly string[]
  /** Values from policies, including verified credentials. */
  readonly learned: Partial<Learned>
  readonly extensions: readonly Extension[]
}

/** A record whose fields are copied once more. */
type CopiedRecord = Omit<ClientRecord, 'fields' | 'extensions'> & {
  readonly fields: Iterable<readonly [string, string]>
  readonly extensions: Iterable<Extension>
}

export class ClientView extends CopiedExchange {
  readonly request: RequestHead & { readonly headers: FieldPairs }
  readonly requestBody = new MemoryBody(undefined)
  readonly peerCertificate: PeerCertificate | undefined
  /** Names of the headers in which the client sent credentials. */
  readonly credentials: readonly string[]
  readonly learned: Learned
  readonly extensions: Map<string, unknown>
  readonly #isOver: () => boolean

  private constructor(record: CopiedRecord, startedAt: number, isOver: () => boolean) {
    super({ ...record, startedAt })
    this.request = { ...record.head, headers: new FieldPairs(record.fields) }
    this.credentials = record.credentials
    this.peerCertificate = record.peerCertificate
    this.learned = Object.assign(new Learned(), record.learned)
    this.extensions = new Map(record.extensions)
    this.#isOver = isOver
  }

  static of(exchange: Exchange, credentials: readonly string[], isOver: () => boolean): ClientView {
    const { request, learned, extensions, startedAt } = exchange
    const { source, rawSource, local, place, backend, bufferLimit, peerCertificate } = exchange
    const copied = { source, rawSource, local, place, backend, bufferLimit, peerCertificate }
    const fields = request.headers.entries()
    const parts = { head: headOf(request), fields, credentials, learned, extensions }
    return new ClientView({ ...copied, ...parts }, startedAt, isOver)
  }

  /** Makes the view of a request that another thread received. */
  static from(record: ClientRecord): ClientView {
    return new ClientView(record, performance.now(), () => false)
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
      // Only strings and numbers are sent to other threads.
      extensions: [...this.extensions].filter(
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
