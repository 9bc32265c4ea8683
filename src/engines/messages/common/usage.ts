/** Token counts of responses, as far as the formats share them. */
import type { Usage } from '../chat.ts'
import { type JsonObject, numberAt, objectAt } from '../json/json.ts'

/** Token counts as a provider reports them; undefined if it does not. */
interface Counts {
  readonly input: number | undefined
  readonly output: number | undefined
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
  readonly reasoning?: number | undefined
  readonly kinds?: Usage['kinds'] | undefined
}

/** `cache` says whether the input count includes cached tokens or excludes them. */
export function usageOf(counts: Counts, cache: 'included' | 'separate'): Usage | undefined {
  const { input = 0, output = 0, cacheRead, cacheWrite, reasoning, kinds } = counts
  if (counts.input === undefined && counts.output === undefined) return undefined
  const cached = cache === 'included' ? (cacheRead ?? 0) + (cacheWrite ?? 0) : 0
  // This runs for each answer, and a list of the known counts would be slower.
  const usage: Writable<Usage> = { input, uncachedInput: Math.max(0, input - cached), output }
  if (cacheRead !== undefined) usage.cacheRead = cacheRead
  if (cacheWrite !== undefined) usage.cacheWrite = cacheWrite
  if (reasoning !== undefined) usage.reasoning = reasoning
  if (kinds !== undefined) usage.kinds = kinds
  return usage
}

type Writable<Type> = { -readonly [Name in keyof Type]: Type[Name] }

const kinds = ['Text', 'Audio', 'Image'].map((kind) => ({
  field: `${kind.toLowerCase()}_tokens`,
  inputName: `input${kind}Tokens`,
  outputName: `output${kind}Tokens`,
}))

/** Returns the tokens by kind; undefined if neither object contains any. */
export function kindsOf(
  input: JsonObject | undefined,
  output: JsonObject | undefined,
): Readonly<Record<string, number>> | undefined {
  if (input === undefined && output === undefined) return undefined
  let found: Record<string, number> | undefined
  for (const { field, inputName, outputName } of kinds) {
    const inputTokens = numberAt(input, field)
    const outputTokens = numberAt(output, field)
    if (inputTokens !== undefined) found = { ...found, [inputName]: inputTokens }
    if (outputTokens !== undefined) found = { ...found, [outputName]: outputTokens }
  }
  return found
}

/** Reads the usage of one response in a realtime session. */
export function readRealtimeUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: numberAt(usage, 'input_tokens'),
    output: numberAt(usage, 'output_tokens'),
    cacheRead: numberAt(objectAt(usage, 'input_token_details'), 'cached_tokens'),
    cacheWrite: numberAt(objectAt(usage, 'input_token_details'), 'cache_write_tokens'),
  }
  return usageOf(counts, 'included')
}

/** Merges the counts of a later event into earlier ones; null and omitted counts change nothing. */
export function laterCounts(before: JsonObject, now: JsonObject | undefined): JsonObject {
  const known = Object.entries(now ?? {}).filter(([, value]) => value != null)
  return { ...before, ...Object.fromEntries(known) }
}

/** Adds up usage that a provider reports separately. */
export function sumOfUsage(a: Usage, b: Usage | undefined): Usage {
  if (b === undefined) return a
  const sum: Writable<Usage> = {
    ...a,
    input: a.input + b.input,
    uncachedInput: a.uncachedInput + b.uncachedInput,
    output: a.output + b.output,
  }
  for (const name of ['cacheRead', 'cacheWrite', 'reasoning'] as const) {
    const [one, other] = [a[name], b[name]]
    if (one !== undefined || other !== undefined) sum[name] = (one ?? 0) + (other ?? 0)
  }
  return sum
}
