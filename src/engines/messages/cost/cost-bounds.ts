/** Buckets in which the costs of requests are counted. */
import { type Money, usdText } from './money.ts'

const smallest: Money = 1_000_000n

/**
 * Upper bounds in ascending order: 0.000001 USD, and then twice the one before, up to 8.388608 USD. So a doubled cost is
 * always in another bucket.
 */
export const costBounds: readonly Money[] = Array.from(
  { length: 24 },
  (_, at) => smallest << BigInt(at),
)

/** The upper bounds of all buckets in USD, as texts. The last bucket has none. */
export const costBuckets: readonly string[] = [...costBounds.map(usdText), 'Infinity']
