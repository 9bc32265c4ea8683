/** How a provider serves a request: in the format of the client, or translated. */
import type { HeaderFields } from '../../ground/exchange/exchange.ts'
import type { ProviderConfig } from '../../ground/model/model-providers.ts'
import type { ErrorForm, Framing } from './format.ts'
import type { CachingPolicy } from './formats/converse/caching.ts'
import type { ConverseOptions } from './formats/converse/options.ts'
import type { EmbeddingsFormatName, ProviderFormatName, ReadRouteType } from './formats/index.ts'
import type { JsonObject } from './json/json.ts'
import type { CountFormatName } from './request/counts/index.ts'

/** How one provider serves one request. */
export type Plan =
  /** The provider has the client's format, so the body is not translated; `change` may modify it. */
  | {
      readonly kind: 'native'
      readonly path: string
      /** How the events of a streamed response are framed; as server-sent events if omitted. */
      readonly framing?: Framing
      /** Whether the body names the model and asks for a stream, although the path does in the client's format. */
      readonly needsModel?: boolean
      /** The form of the provider's errors; that of the client's format if omitted. */
      readonly errors?: ErrorForm
      change?(body: JsonObject): JsonObject
    }
  /** The conversation is translated to `format`. */
  | {
      readonly kind: 'translated'
      readonly path: string
      readonly format: ProviderFormatName
      /** The path of the provider's responses format, for what its chat completions refuse. */
      readonly responsesPath?: string
      change?(body: JsonObject): JsonObject
    }
  /** Embeddings in the provider's own format. */
  | { readonly kind: 'embeddings'; readonly path: string; readonly format: EmbeddingsFormatName }
  /** The provider counts the tokens; request and response are in its own format. */
  | { readonly kind: 'count'; readonly path: string; readonly format: CountFormatName }
  /** The gateway counts tokens. */
  | { readonly kind: 'local-count' }

/** What a provider knows about requests. */
export interface Planner {
  /**
   * Decides how the provider serves a request; `model` is the model after aliases are resolved.
   * @throws LlmError 400 if the provider does not support the request.
   */
  plan(route: ReadRouteType, model: string, config: ProviderConfig, isStream: boolean): Plan
  /** Settings for translated requests in addition to the conversation; `headers` are those of the client. */
  requestOptions?(
    config: ProviderConfig,
    caching: CachingPolicy | undefined,
    headers: HeaderFields,
  ): ConverseOptions
}
