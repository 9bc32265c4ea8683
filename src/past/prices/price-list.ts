/** Prices of the tokens of language models. The user writes the list; Sluice has no built-in prices. */
import * as shape from '../../ground/base/shape.ts'

/** The prices of a model, per million tokens. */
interface Price {
  /** Name of a model; a `*` at the end matches any rest of a name. */
  readonly model: string
  /** `gen_ai.provider.name`, such as `openai`; all providers if omitted. */
  readonly provider?: string
  readonly input: number
  /** Omitted for models without output, such as embeddings. */
  readonly output?: number
  /** Input tokens that the provider reads from its cache; `input` if omitted. */
  readonly cacheRead?: number
  /** Input tokens that the provider writes to its cache; `input` if omitted. */
  readonly cacheWrite?: number
}

export interface PriceList {
  /** ISO 4217 code. */
  readonly currency: string
  /** The first price that matches a model applies. */
  readonly models: readonly Price[]
}

const name = shape.where(shape.text, 'a name', (text) => text !== '')

export const priceList = shape.record<PriceList>({
  currency: shape.where(shape.text, 'a code of ISO 4217, such as USD', (text) =>
    /^[A-Z]{3}$/.test(text),
  ),
  models: shape.list(
    shape.record<Price>({
      model: name,
      provider: shape.optional(name),
      input: shape.amount,
      output: shape.optional(shape.amount),
      cacheRead: shape.optional(shape.amount),
      cacheWrite: shape.optional(shape.amount),
    }),
  ),
})

/** Tokens of one or more requests to a model. */
export interface TokenUse {
  readonly model: string
  readonly provider: string
  /** Includes `cacheRead` and `cacheWrite`. */
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** Reads the tokens of a request from its access log or decision record; undefined if it has none. */
export function usageOf(details: Readonly<Record<string, string | number>>): TokenUse | undefined {
  const count = (field: string) => Number(details[`gen_ai.usage.${field}`] ?? 0)
  if (details['gen_ai.usage.input_tokens'] === undefined) return undefined
  return {
    model: `${details['gen_ai.request.model'] ?? ''}`,
    provider: `${details['gen_ai.provider.name'] ?? ''}`,
    input: count('input_tokens'),
    output: count('output_tokens'),
    cacheRead: count('cache_read.input_tokens'),
    cacheWrite: count('cache_creation.input_tokens'),
  }
}

/** The cost in the currency of the list; undefined if the list lacks a price. */
export function costOf({ models }: PriceList, use: TokenUse): number | undefined {
  const price = models.find((one) => isPriceOf(one, use))
  if (price === undefined || (price.output === undefined && use.output > 0)) return undefined
  const { input, output = 0, cacheRead = input, cacheWrite = input } = price
  const uncached = Math.max(use.input - use.cacheRead - use.cacheWrite, 0)
  const millions =
    uncached * input + use.cacheRead * cacheRead + use.cacheWrite * cacheWrite + use.output * output
  return millions / 1e6
}

function isPriceOf({ model, provider }: Price, use: TokenUse): boolean {
  if (provider !== undefined && provider !== use.provider) return false
  return model.endsWith('*') ? use.model.startsWith(model.slice(0, -1)) : use.model === model
}
