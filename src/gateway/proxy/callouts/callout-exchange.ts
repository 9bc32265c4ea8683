/** A call of a policy, as the policies of its backend see it, which may sign it or add credentials. */
import type {
  CalloutSubtype,
  Exchange,
  GrpcStreamCallout,
  HttpCallout,
  Peer,
  RequestHead,
  RoutePlace,
} from '../../../ground/exchange/exchange.ts'
import { Extensions } from '../../../ground/exchange/extensions.ts'
import { Learned } from '../../../ground/exchange/learned.ts'
import { FieldPairs, MemoryBody } from '../../../ground/exchange/memory-message.ts'
import { type RequestTrace, traceOf } from '../request/request-trace.ts'

const noPeer: Peer = { address: '', port: 0 }
const noPlace: RoutePlace = { gateway: '', listener: '' }

export interface CalloutRequest extends Pick<GrpcStreamCallout, 'defaultTls'> {
  readonly target: HttpCallout['target']
  readonly isGrpc: boolean
  readonly isOnce?: boolean
  readonly subtype?: CalloutSubtype
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array | undefined
  /** The exchange on whose behalf the call is made. */
  readonly cause: Exchange | undefined
}

class CalloutRequestHead implements RequestHead {
  readonly method: string
  readonly version = '1.1'
  readonly headers: FieldPairs
  readonly scheme: 'http' | 'https'
  authority: string
  path: string
  query: string | undefined

  constructor(
    { method, path, headers }: CalloutRequest,
    scheme: 'http' | 'https',
    authority: string,
  ) {
    const queryStart = path.indexOf('?')
    this.method = method
    this.scheme = scheme
    this.path = queryStart < 0 ? path : path.slice(0, queryStart)
    this.query = queryStart < 0 ? undefined : path.slice(queryStart + 1)
    this.headers = new FieldPairs(headers.filter(([name]) => name.toLowerCase() !== 'host'))
    this.authority = headers.find(([name]) => name.toLowerCase() === 'host')?.[1] ?? authority
  }
}

/** The data of the exchange that caused the call, copied because the exchange may end first. */
interface CalloutCause {
  readonly source: Peer
  readonly place: RoutePlace
  readonly learned: Learned
  readonly trace: RequestTrace | undefined
}

export function causeOf(exchange: Exchange): CalloutCause {
  const { source, place } = exchange
  const learned = new Learned()
  learned.jwtToken = exchange.learned.jwtToken
  learned.apiKeyToken = exchange.learned.apiKeyToken
  return { source, place, learned, trace: traceOf(exchange) }
}

export class CalloutExchange implements Exchange {
  readonly request: CalloutRequestHead
  readonly requestBody: MemoryBody
  readonly response = undefined
  readonly responseBody = undefined
  readonly source: Peer
  readonly rawSource: Peer
  readonly local = noPeer
  readonly peerCertificate = undefined
  readonly place: RoutePlace
  readonly backend = undefined
  readonly bufferLimit = Number.POSITIVE_INFINITY
  readonly startedAt: number
  readonly isOver = false
  readonly learned: Learned
  readonly extensions = new Extensions()

  constructor(
    head: CalloutRequest,
    scheme: 'http' | 'https',
    authority: string,
    cause: CalloutCause | undefined,
  ) {
    this.request = new CalloutRequestHead(head, scheme, authority)
    this.requestBody = new MemoryBody(head.body)
    this.source = cause?.source ?? noPeer
    this.rawSource = this.source
    this.place = cause?.place ?? noPlace
    this.startedAt = performance.now()
    this.learned = cause?.learned ?? new Learned()
  }

  /** Returns the head in HTTP/1.1, including the empty line at its end. Sets the framing headers. */
  headText(): string {
    const { method, path, query, authority, headers } = this.request
    let text = `${method} ${query === undefined ? path : `${path}?${query}`} HTTP/1.1\r\nhost: ${authority}\r\n`
    for (const [name, value] of headers.pairs) {
      const key = name.toLowerCase()
      if (key !== 'content-length' && key !== 'transfer-encoding') text += `${name}: ${value}\r\n`
    }
    const { content, length } = this.requestBody
    return content === undefined ? `${text}\r\n` : `${text}content-length: ${length}\r\n\r\n`
  }
}
