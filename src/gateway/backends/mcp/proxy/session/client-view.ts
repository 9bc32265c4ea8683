/** A copy of a client's request. The exchange itself may end and its object serve another request. */
import { budgetsOf, type RequestBudgets } from '../../../../../ground/exchange/budgets.ts'
import { CopiedExchange, type CopiedFields } from '../../../../../ground/exchange/derived.ts'
import type {
  Exchange,
  PeerCertificate,
  RequestHead,
} from '../../../../../ground/exchange/exchange.ts'
import { Extensions } from '../../../../../ground/exchange/extensions.ts'
import { Learned } from '../../../../../ground/exchange/learned.ts'
import { FieldPairs, MemoryBody } from '../../../../../ground/exchange/memory-message.ts'

type CopiedProperties = CopiedFields & Pick<Exchange, 'peerCertificate'>

type Extension = readonly [name: string, value: unknown]

/** A request as plain data that can be sent to another thread. */
export interface ClientRecord extends Omit<CopiedProperties, 'startedAt'> {
  readonly head: Omit<RequestHead, 'headers'>
  readonly fields: readonly (readonly [string, string])[]
  readonly identifying: readonly string[]
  /** Values from policies, including verified credentials. */
  readonly learned: Partial<Learned>
  readonly extensions: readonly Extension[]
}

/** What is copied once more for each view. */
interface CopiedParts extends Pick<ClientRecord, 'head' | 'identifying' | 'learned'> {
  readonly fields: Iterable<readonly [string, string]>
  /** Undefined if there are none, as in most requests. */
  readonly extensions: Iterable<Extension> | undefined
}

export class ClientView extends CopiedExchange {
  readonly request: RequestHead & { readonly headers: FieldPairs }
  readonly requestBody = new MemoryBody(undefined)
  readonly peerCertificate: PeerCertificate | undefined
  /** Names of the headers that remain as the client sent them and by which servers may recognize it. */
  identifying: readonly string[]
  readonly learned = new Learned()
  #extensions: Extensions | undefined
  readonly #isOver: () => boolean

  private constructor(
    origin: CopiedProperties,
    { head, fields, identifying, learned, extensions }: CopiedParts,
    isOver: () => boolean,
  ) {
    super(origin)
    const { method, scheme, authority, path, query, version } = head
    const headers = new FieldPairs(fields)
    this.request = { method, scheme, authority, path, query, version, headers }
    this.identifying = identifying
    this.peerCertificate = origin.peerCertificate
    Object.assign(this.learned, learned)
    if (extensions !== undefined) {
      for (const [name, value] of extensions) this.extensions.set(name, value)
    }
    this.#isOver = isOver
  }

  static of(exchange: Exchange, identifying: readonly string[], isOver: () => boolean): ClientView {
    const { request, learned, extensions } = exchange
    const fields = request.headers.entries()
    const copied = extensions.size === 0 ? undefined : extensions
    const parts = { head: request, fields, identifying, learned, extensions: copied }
    return new ClientView(exchange, parts, isOver)
  }

  /** Makes the view of a request that another thread received. */
  static from(record: ClientRecord): ClientView {
    const origin = { ...record, startedAt: performance.now() }
    return new ClientView(origin, record, () => false)
  }

  get extensions(): Extensions {
    this.#extensions ??= new Extensions()
    return this.#extensions
  }

  /** Returns one of the extensions. Most requests have none. */
  extension(name: string): unknown {
    return this.#extensions?.get(name)
  }

  /** The budgets that apply to the request; undefined if none does. */
  get budgets(): RequestBudgets | undefined {
    return this.#extensions && budgetsOf(this)
  }

  get isOver(): boolean {
    return this.#isOver()
  }

  record(): ClientRecord {
    const { source, rawSource, local, place, backend, bufferLimit, peerCertificate } = this
    return {
      head: headOf(this.request),
      fields: this.request.headers.pairs,
      identifying: this.identifying,
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
