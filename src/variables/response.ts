import type { CelResult } from '../cel/index.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { bodyField, bodyPrefixField } from './body-field.ts'
import { headersView } from './headers.ts'
import { ExchangeView, type Pointer } from './view.ts'

const fields = ['code', 'grpcStatus', 'headers', 'body', 'bodyPrefix'] as const

/** Ints of all statuses, so that reading one makes nothing. */
const codes = Array.from({ length: 600 }, (_, code) => BigInt(code))

/** `response`: of the upstream or of the gateway, as it stands now. */
export class ResponseView extends ExchangeView {
  readonly #headers

  constructor(pointer: Pointer) {
    super(pointer, fields)
    this.#headers = headersView(() => this.exchange?.response?.headers)
  }

  override field(name: string): CelResult | undefined {
    const { exchange } = this
    const response = exchange?.response
    if (exchange === undefined || response === undefined) return undefined
    switch (name) {
      case 'code':
        return codes[response.status]
      case 'headers':
        return this.#headers
      case 'grpcStatus':
        return grpcStatus(exchange)
      case 'body':
        return bodyField(exchange.responseBody)
      case 'bodyPrefix':
        return bodyPrefixField(exchange.responseBody)
      default:
        return undefined
    }
  }
}

/**
 * Status of a gRPC response: in its trailers, known once its body is over, or in its head where it has
 * no body. Undefined for all other responses.
 */
export function grpcStatus({ response, responseBody }: Exchange): bigint | undefined {
  const trailer = /(?:^|\n)grpc-status:[\t ]*([0-9]{1,3})[\t ]*(?:\r?\n|$)/i
  const text =
    trailer.exec(responseBody?.trailers ?? '')?.[1] ?? response?.headers.get('grpc-status')
  return text !== undefined && /^[0-9]{1,3}$/.test(text) ? BigInt(text) : undefined
}
