/** The prices of a model, as catalogs write them. */
import * as shape from '../../../ground/base/shape.ts'

/** Decimal text, because sums of binary fractions are not exact. */
const price = shape.optional(
  shape.where(shape.text, 'a decimal of at most 6 places as text, such as "0.15"', (text) =>
    /^\d{1,9}(\.\d{1,6})?$/.test(text),
  ),
)

/** Prices in USD per million tokens. */
const rateFields = {
  input: price,
  output: price,
  cacheRead: price,
  /** Audio that is read from a cache. */
  cacheReadAudio: price,
  cacheWrite: price,
  /** Tokens that are written to a cache for an hour. */
  cacheWrite1h: price,
  reasoning: price,
  inputAudio: price,
  outputAudio: price,
  inputImage: price,
  outputImage: price,
}
const rates = shape.record(rateFields)
export type Rates = shape.Infer<typeof rates>

const utcWindow = shape.record({
  /** Such as `16:30-00:30`; the end is not part of it. */
  hours: shape.where(shape.text, 'hours such as 16:30-00:30', (text) =>
    /^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$/.test(text),
  ),
  /** Days of the week on which the hours begin, from 1 (Monday) to 7. */
  days: shape.optional(shape.list(shape.integer(1, 7))),
})
export type UtcWindow = shape.Infer<typeof utcWindow>

/** Prices in place of the usual ones, for long contexts, for other services, or for hours of the day. */
const tier = shape.record({
  ...rateFields,
  /** The tier applies if the input, with cached tokens, has more tokens than this. */
  contextOver: shape.optional(shape.count),
  /** The service that the response names. `provisioned` is capacity that was paid in advance. */
  service: shape.optional(
    shape.choice('batch', 'flex', 'priority', 'balanced', 'ultrafast', 'provisioned'),
  ),
  utc: shape.optional(utcWindow),
})
export type Tier = shape.Infer<typeof tier>

/** What providers bill by the call, in USD for one call. */
const calls = shape.record({
  webSearch: price,
  fileSearch: price,
  codeInterpreter: price,
  mapSearch: price,
  /** A unit of a rerank, in which the provider counts queries and documents. */
  searchUnit: price,
  /** A second of audio that is transcribed. */
  audioSecond: price,
})

const factors = shape.optional(
  shape.map(
    shape.where(shape.text, 'a decimal of at most 6 places as text, such as "1.1"', (text) =>
      /^\d{1,3}(\.\d{1,6})?$/.test(text),
    ),
  ),
)

/** Factors of all prices, by what the response says. */
const multipliers = shape.record({
  /** By the place of the inference, such as `us`. */
  geography: factors,
  /** By the speed of the response, such as `fast`. */
  speed: factors,
})

/** The members of a model's entry that have prices. */
export const priceFields = {
  rates: shape.optional(rates),
  tiers: shape.optional(shape.list(tier)),
  calls: shape.optional(calls),
  multipliers: shape.optional(multipliers),
}
const priced = shape.record(priceFields)
export type PricedEntry = shape.Infer<typeof priced>
