/** A call of a policy as backend policies see it: they sign it, or add a credential, as to any request. */
import type { Exchange, Peer, RequestHead, RoutePlace } from '../../exchange/exchange.ts'
import { Learned } from '../../exchange/learned.ts'
import { FieldPairs, MemoryBody } from '../../exchange/memory-message.ts'
import { type RequestTrace, traceOf } from '../request/request-trace.ts'

const nobody: Peer = { address: '', port: 0 }
const nowhere: RoutePlace = { gateway: '', listener: '' }

export interface CalloutHead {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array | undefined
}

class CalloutRequestHead implements RequestHead {
  readonly method: string
  readonly version = '1.1'
  readonly headers: FieldPairs
  readonly scheme: 'http' | 'https'
  authority: string
  path: string
  query: string | undefined

  constructor({ method, path, headers }: CalloutHead, scheme: 'http' | 'https', authority: string) {
    const mark = path.indexOf('?')
    this.method = method
    this.scheme = scheme
    this.path = mark < 0 ? path : path.slice(0, mark)
    this.query = mark < 0 ? undefined : path.slice(mark + 1)
    this.headers = new FieldPairs(headers.filter(([name]) => name.toLowerCase() !== 'host'))
    this.authority = headers.find(([name]) => name.toLowerCase() === 'host')?.[1] ?? authority
  }
}

/**
 * What is known of the exchange that a call is made for, as far as backend policies ask. Taken when the
 * call is asked for: the exchange may be over, and another one in its place, before the call leaves.
 */
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
  readonly local = nobody
  readonly peerCertificate = undefined
  readonly place: RoutePlace
  readonly backend = undefined
  readonly bufferLimit = Number.POSITIVE_INFINITY
  readonly startedAt: number
  readonly isOver = false
  readonly learned: Learned
  readonly facts = new Map<string, unknown>()

  constructor(
    head: CalloutHead,
    scheme: 'http' | 'https',
    authority: string,
    cause: CalloutCause | undefined,
  ) {
    this.request = new CalloutRequestHead(head, scheme, authority)
    this.requestBody = new MemoryBody(head.body)
    this.source = cause?.source ?? nobody
    this.rawSource = this.source
    this.place = cause?.place ?? nowhere
    this.startedAt = performance.now()
    this.learned = cause?.learned ?? new Learned()
  }

  /** As HTTP/1.1 has it, with its empty line. Fields that frame a message are ours to write. */
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
