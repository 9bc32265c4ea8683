/** A published vocabulary that the core counts with. */
export type EncodingName = 'o200k_base' | 'cl100k_base'

export interface ModelEncoding {
  readonly encoding: EncodingName
  /** The model's own vocabulary: counts are exact. Otherwise `factor` makes an estimate of them. */
  readonly exact: boolean
  /** Tokens of the model for each token of `encoding`; 1 where counts are exact. */
  readonly factor: number
}

const o200k: ModelEncoding = { encoding: 'o200k_base', exact: true, factor: 1 }
const cl100k: ModelEncoding = { encoding: 'cl100k_base', exact: true, factor: 1 }
const estimate = (factor: number): ModelEncoding => ({
  encoding: 'o200k_base',
  exact: false,
  factor,
})

/**
 * First matching prefix wins. A prefix ends at the end of the name or before anything but a letter or
 * digit, so that `o1` is not `o100` and `gpt-4` is not `gpt-4o`.
 *
 * Vendors without a published vocabulary, or with one that we do not carry, get an estimate: the count
 * of o200k_base times a factor on the high side of what their prose and code usually cost. The factors
 * are rules of thumb, not measurements: good for limits and dashboards, not for bills.
 */
const models: readonly (readonly [prefix: string, encoding: ModelEncoding])[] = [
  ['gpt-4o', o200k],
  ['chatgpt-4o', o200k],
  ['gpt-4.1', o200k],
  ['gpt-4.5', o200k],
  ['gpt-5', o200k],
  // o200k_harmony: the same ranks, other special tokens.
  ['gpt-oss', o200k],
  ['o1', o200k],
  ['o3', o200k],
  ['o4', o200k],
  ['codex-mini', o200k],
  ['gpt-4', cl100k],
  ['gpt-3.5', cl100k],
  // As Azure spells it.
  ['gpt-35', cl100k],
  ['text-embedding-3', cl100k],
  ['text-embedding-ada-002', cl100k],
  ['davinci-002', cl100k],
  ['babbage-002', cl100k],
  ['claude', estimate(1.2)],
  ['gemini', estimate(1.1)],
  ['gemma', estimate(1.1)],
]

const otherwise = estimate(1.2)

function hasPrefix(name: string, prefix: string): boolean {
  return name.startsWith(prefix) && !/^[a-z0-9]/.test(name.slice(prefix.length))
}

/**
 * The encoding to count a model's tokens with. Takes names as requests carry them: any case, a
 * provider before a slash or a dot (`openai/gpt-4o`, `us.anthropic.claude-...`), a fine-tune's
 * (`ft:gpt-4o-mini:org::id`), dates and sizes behind. Never fails: an unknown name gets an estimate.
 */
export function encodingForModel(model: string): ModelEncoding {
  const name = model
    .toLowerCase()
    .replace(/^.*\//, '')
    .replace(/^ft:/, '')
    .replace(/^(?:[a-z-]+\.)*anthropic\./, '')
  return models.find(([prefix]) => hasPrefix(name, prefix))?.[1] ?? otherwise
}
