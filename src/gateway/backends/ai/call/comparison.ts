import type { RequestVector } from '../answers/similar-requests.ts'
import type { textFeatures } from '../answers/text-features.ts'
import type { EmbeddingUse } from './embed.ts'

/** The comparison of a request with stored ones. */
export interface Comparison {
  /** Identifies everything that must be equal. */
  readonly group: string
  readonly text: string
  readonly features: NonNullable<ReturnType<typeof textFeatures>>
  /** The embedding; undefined if there is none. */
  vector: RequestVector | undefined
  use: EmbeddingUse | undefined
  /** Why the request could not be compared. */
  problem: string | undefined
}
