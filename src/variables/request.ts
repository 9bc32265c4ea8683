import { withoutRootDot } from '../base/root-dot.ts'
import { type CelResult, CelTimestamp } from '../cel/index.ts'
import type { RequestHead } from '../exchange/exchange.ts'
import { bodyField, bodyPrefixField } from './body-field.ts'
import { headersView } from './headers.ts'
import { ExchangeView, type Pointer } from './view.ts'

const fields = [
  'method',
  'uri',
  'host',
  'scheme',
  'path',
  'pathAndQuery',
  'version',
  'headers',
  'body',
  'bodyPrefix',
  'startTime',
  'endTime',
] as const

/** `request`: as it stands now, edits of earlier policies included. */
export class RequestView extends ExchangeView {
  readonly #headers

  constructor(pointer: Pointer) {
    super(pointer, fields)
    this.#headers = headersView(() => this.exchange?.request.headers)
  }

  override field(name: string): CelResult | undefined {
    const { exchange } = this
    if (exchange === undefined) return undefined
    const { request } = exchange
    switch (name) {
      case 'headers':
        return this.#headers
      case 'method':
        return request.method
      case 'path':
        return request.path
      case 'host':
        return withoutRootDot(request.authority)
      case 'scheme':
        return request.scheme
      case 'pathAndQuery':
        return pathAndQuery(request)
      case 'uri':
        return `${request.scheme}://${withoutRootDot(request.authority)}${pathAndQuery(request)}`
      case 'version':
        return `HTTP/${request.version}`
      case 'body':
        return bodyField(exchange.requestBody)
      case 'bodyPrefix':
        return bodyPrefixField(exchange.requestBody)
      case 'startTime':
        return CelTimestamp.fromMilliseconds(performance.timeOrigin + exchange.startedAt)
      case 'endTime':
        return exchange.isOver
          ? CelTimestamp.fromMilliseconds(performance.timeOrigin + performance.now())
          : undefined
      default:
        return undefined
    }
  }
}

function pathAndQuery({ path, query }: RequestHead): string {
  return query === undefined ? path : `${path}?${query}`
}
