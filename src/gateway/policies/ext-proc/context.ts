import type { Exchange } from '../../../ground/exchange/exchange.ts'
import { type BodyNeeds, bufferBodies } from '../../variables/index.ts'
import { claimsMetadata, toObject } from '../ext-auth/check-request.ts'
import { bindAll, evaluateAll, type Named } from '../ext-auth/expressions.ts'
import type { ExtProcConfig } from './config.ts'
import type { FilterValues, SentContext } from './message-writer.ts'

/** Key of the attributes: the name of Envoy's filter, which sends its attributes under it. */
const filter = 'envoy.filters.http.ext_proc'

/** Computes the metadata and attributes that a processor gets with the headers of a message. */
export class ContextExpressions implements BodyNeeds {
  readonly request: boolean
  readonly response = false
  readonly #metadata: readonly (readonly [filter: string, values: Named])[] | undefined
  readonly #requestAttributes: Named
  readonly #responseAttributes: Named

  constructor({ metadata, requestAttributes, responseAttributes }: ExtProcConfig) {
    this.#metadata =
      metadata && Object.entries(metadata).map(([name, values]) => [name, bindAll(values)] as const)
    this.#requestAttributes = bindAll(requestAttributes)
    this.#responseAttributes = bindAll(responseAttributes)
    const ofRequest = [...(this.#metadata ?? []).flatMap(([, values]) => values)]
    this.request = [...ofRequest, ...this.#requestAttributes].some(
      ({ expression }) => expression.request,
    )
  }

  async ofRequest(exchange: Exchange): Promise<SentContext> {
    await bufferBodies(exchange, this)
    const attributes = attributesOf(this.#requestAttributes, exchange)
    return { metadata: this.#metadataOf(exchange), attributes }
  }

  /** Returns the attributes for a response. Metadata is sent only with requests. */
  ofResponse(exchange: Exchange): SentContext {
    return { attributes: attributesOf(this.#responseAttributes, exchange) }
  }

  #metadataOf(exchange: Exchange): FilterValues | undefined {
    if (this.#metadata === undefined) return claimsMetadata(exchange)
    return Object.fromEntries(
      this.#metadata.map(([name, values]) => [name, toObject(evaluateAll(values, exchange))]),
    )
  }
}

function attributesOf(named: Named, exchange: Exchange): FilterValues | undefined {
  return named.length === 0 ? undefined : { [filter]: toObject(evaluateAll(named, exchange)) }
}
