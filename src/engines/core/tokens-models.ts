/** Name of a published vocabulary with which the core counts tokens. */
export type EncodingName = 'o200k_base' | 'cl100k_base'

export interface ModelEncoding {
  readonly encoding: EncodingName
  /** Whether `encoding` is the model's own, so that counts are exact. Otherwise they are estimates. */
  readonly exact: boolean
  /** Number of tokens of the model per token of `encoding`; 1 if counts are exact. */
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
 * Encodings by prefix of the model's name; the first matching prefix wins. No letter or digit may
 * follow the prefix, so that `o1` does not match `o100`, nor `gpt-4` match `gpt-4o`.
 *
 * Models without a published vocabulary, or with one that is not included, get an estimate: the
 * count of o200k_base times a factor that is usually too high for their prose and code. The factors
 * are rules of thumb, not measurements: good for limits and dashboards, not for bills.
 */
const models: readonly (readonly [prefix: string, encoding: ModelEncoding])[] = [
  ['gpt-4o', o200k],
  ['chatgpt-4o', o200k],
  ['gpt-4.1', o200k],
  ['gpt-4.5', o200k],
  ['gpt-5', o200k],
  // o200k_harmony has the same ranks but other special tokens.
  ['gpt-oss', o200k],
  ['o1', o200k],
  ['o3', o200k],
  ['o4', o200k],
  ['codex-mini', o200k],
  ['gpt-4', cl100k],
  ['gpt-3.5', cl100k],
  // Azure's spelling of gpt-3.5.
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
 * Returns the encoding for counting a model's tokens. Accepts names as they appear in requests: in any
 * case, with a provider before a slash or a dot (`openai/gpt-4o`, `us.anthropic.claude-...`), with
 * dates and sizes, and names of fine-tunes (`ft:gpt-4o-mini:org::id`). An unknown name gets an
 * estimate.
 */
export function encodingForModel(model: string): ModelEncoding {
  const name = model
    .toLowerCase()
    .replace(/^.*\//, '')
    .replace(/^ft:/, '')
    .replace(/^(?:[a-z-]+\.)*anthropic\./, '')
  return models.find(([prefix]) => hasPrefix(name, prefix))?.[1] ?? otherwise
}
