import type { JsonObject } from '../../json/json.ts'
import type { CachingPolicy } from './caching.ts'

/** Settings of requests in addition to the conversation. */
export interface ConverseOptions {
  readonly guardrail?: { readonly identifier: string; readonly version: string }
  readonly caching?: CachingPolicy
  /** Scalars that the provider adds to its logs. */
  readonly requestMetadata?: JsonObject
  /** Fields to add to `additionalModelRequestFields`. */
  readonly additional?: JsonObject
}
