/** Buckets in which the costs of requests are counted. */
import { type Money, usdText } from './money.ts'

const smallest: Money = 1_000_000n

/**
 * Upper bounds in ascending order, from 0.000001 USD to 8.388608 USD, each twice the previous one. So a doubled cost is
 * in another bucket.
 */
export const costBounds: readonly Money[] = Array.from(
  { length: 24 },
  (_, at) => smallest << BigInt(at),
)

/** The upper bounds of all buckets in USD, as texts. The last bucket has none. */
export const costBuckets: readonly string[] = [...costBounds.map(usdText), 'Infinity']
