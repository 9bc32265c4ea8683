import {
  type Activation,
  type CelRecord,
  type CelResult,
  CelView,
} from '../../engines/cel/index.ts'
import type { Exchange, RoutePlace } from '../../ground/exchange/exchange.ts'
import { identityOf } from '../principal/principal.ts'
import {
  backendFields,
  destinationFields,
  type Fields,
  proxyFields,
  requestFields,
  responseFields,
  sourceFields,
} from './fields.ts'
import { headersView } from './headers.ts'

const noPlace = { gateway: '', listener: '' }

/** Resolves variables from the exchange in its field `exchange`. A variable that is not set reads as null. */
export class ExchangeActivation implements Activation {
  exchange: Exchange | undefined
  readonly #request = this.#view(requestFields(headersView(() => this.exchange?.request.headers)))
  readonly #response = this.#view(
    responseFields(headersView(() => this.exchange?.response?.headers)),
  )
  readonly #source = this.#view(sourceFields)
  readonly #destination = this.#view(destinationFields)
  readonly #backend = this.#view(backendFields)
  readonly #proxy = this.#view(proxyFields)

  #view(fields: Fields): CelView {
    return new ExchangeView(this, fields)
  }

  lookup(name: string): CelResult | undefined {
    const { exchange } = this
    if (exchange === undefined) return name === 'env' ? environmentAt(noPlace) : undefined
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

/** A variable whose fields are read from the exchange only when an expression needs them. */
class ExchangeView extends CelView {
  readonly #activation: ExchangeActivation
  readonly #fields: ReadonlyMap<string, Fields[string]>

  constructor(activation: ExchangeActivation, fields: Fields) {
    super()
    this.#activation = activation
    this.#fields = new Map(Object.entries(fields))
  }

  override field(name: string): CelResult | undefined {
    const { exchange } = this.#activation
    return exchange === undefined ? undefined : this.#fields.get(name)?.(exchange)
  }

  override fieldNames(): readonly string[] {
    return [...this.#fields.keys()].filter((name) => this.hasField(name))
  }
}

const { POD_NAME: podName, POD_NAMESPACE: podNamespace, NAMESPACE: fallbackNamespace } = process.env
const namespace = podNamespace ?? fallbackNamespace

let lastGateway: string | undefined
let last: CelRecord = {}

/**
 * The variable `env`: the name and namespace of the proxy's pod, which the deployment sets as environment
 * variables, and the name of the Gateway that the request came to.
 */
function environmentAt({ gateway }: RoutePlace): CelRecord {
  if (gateway !== lastGateway) {
    lastGateway = gateway
    const name = gateway.slice(gateway.indexOf('/') + 1)
    last = { podName, namespace, gateway: name === '' ? undefined : name }
  }
  return last
}

function learnedValue(exchange: Exchange, name: string): CelResult | undefined {
  const { learned } = exchange
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
    case 'mcpGuardrails':
      return learned.mcpGuardrails
    case 'identity':
      return identityOf(exchange)
    case 'llm':
      return learned.llm
    case 'llmRequest':
      return learned.llmRequest
    case 'mcp':
      return learned.mcp
    case 'a2a':
      return learned.a2a
    default:
      return undefined
  }
}
