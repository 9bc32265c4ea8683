import type { CelResult } from '../cel/index.ts'
import type { HeaderFields } from '../exchange/exchange.ts'
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
        return grpcStatus(response.headers)
      case 'body':
        return bodyField(exchange.responseBody)
      case 'bodyPrefix':
        return bodyPrefixField(exchange.responseBody)
      default:
        return undefined
    }
  }
}

/** Where the response has no body it stands in the head. */
function grpcStatus(headers: HeaderFields): bigint | undefined {
  const text = headers.get('grpc-status')
  return text !== undefined && /^[0-9]{1,3}$/.test(text) ? BigInt(text) : undefined
}
