import type { Activation, CelResult } from '../cel/index.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { environmentAt } from './environment.ts'
import { BackendView, DestinationView, ProxyView } from './place.ts'
import { RequestView } from './request.ts'
import { ResponseView } from './response.ts'
import { SourceView } from './source.ts'

const nowhere = { gateway: '', listener: '' }

/** The variables of whichever exchange it is pointed at. Undefined reads as null. */
export class ExchangeActivation implements Activation {
  exchange: Exchange | undefined
  readonly #request = new RequestView(this)
  readonly #response = new ResponseView(this)
  readonly #source = new SourceView(this)
  readonly #destination = new DestinationView(this)
  readonly #backend = new BackendView(this)
  readonly #proxy = new ProxyView(this)

  lookup(name: string): CelResult | undefined {
    const { exchange } = this
    if (exchange === undefined) return name === 'env' ? environmentAt(nowhere) : undefined
    switch (name) {
      case 'request':
        return this.#request
      case 'response':
        return exchange.response === undefined ? undefined : this.#response
      case 'source':
        return this.#source
      case 'destination':
        return this.#destination
      case 'backend':
        return exchange.backend === undefined ? undefined : this.#backend
      case 'env':
        return environmentAt(exchange.place)
      case 'proxy':
        return this.#proxy
      default:
        return learnedValue(exchange, name)
    }
  }
}

function learnedValue({ learned }: Exchange, name: string): CelResult | undefined {
  switch (name) {
    case 'jwt':
      return learned.jwt
    case 'apiKey':
      return learned.apiKey
    case 'basicAuth':
      return learned.basicAuth as { readonly [name: string]: string } | undefined
    case 'extauthz':
      return learned.extauthz
    case 'extproc':
      return learned.extproc
    case 'llm':
      return learned.llm
    case 'llmRequest':
      return learned.llmRequest
    case 'mcp':
      return learned.mcp
    default:
      return undefined
  }
}
