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

/**
 * Returns a count; undefined if it is none that a message can have: limits and metrics must never get a negative
 * number of tokens, or one that is not exact.
 */
export function countAt(value: unknown, name: string): number | undefined {
  const count = numberAt(value, name)
  return count !== undefined && Number.isSafeInteger(count) && count >= 0 ? count : undefined
}

/** Returns the count of a part; undefined if it is more than the whole. */
const within = (whole: number, part: number | undefined): number | undefined =>
  part !== undefined && part <= whole ? part : undefined

/**
 * `cache` says whether the input count includes cached tokens or excludes them. Details that are more than their
 * whole are unknown.
 */
export function usageOf(counts: Counts, cache: 'included' | 'separate'): Usage | undefined {
  const { input = 0, output = 0, kinds } = counts
  if (counts.input === undefined && counts.output === undefined) return undefined
  const isIncluded = cache === 'included'
  const cacheRead = isIncluded ? within(input, counts.cacheRead) : counts.cacheRead
  const left = input - (cacheRead ?? 0)
  const cacheWrite = isIncluded ? within(left, counts.cacheWrite) : counts.cacheWrite
  const reasoning = within(output, counts.reasoning)
  const cached = isIncluded ? (cacheRead ?? 0) + (cacheWrite ?? 0) : 0
  // This runs for each response, and a list of the known counts would be slower.
  const usage: Writable<Usage> = { input, uncachedInput: Math.max(0, input - cached), output }
  if (cacheRead !== undefined) usage.cacheRead = cacheRead
  if (cacheWrite !== undefined) usage.cacheWrite = cacheWrite
  if (reasoning !== undefined) usage.reasoning = reasoning
  if (kinds !== undefined) usage.kinds = kindsWithin(kinds, input, output)
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
    const inputTokens = countAt(input, field)
    const outputTokens = countAt(output, field)
    if (inputTokens !== undefined) found = { ...found, [inputName]: inputTokens }
    if (outputTokens !== undefined) found = { ...found, [outputName]: outputTokens }
  }
  return found
}

function kindsWithin(
  found: Readonly<Record<string, number>>,
  input: number,
  output: number,
): Readonly<Record<string, number>> {
  const isFit = ([name, count]: [string, number]) =>
    count <= (name.startsWith('input') ? input : output)
  const entries = Object.entries(found)
  return entries.every(isFit) ? found : Object.fromEntries(entries.filter(isFit))
}

/** Reads the usage of one response in a realtime session. */
export function readRealtimeUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: countAt(usage, 'input_tokens'),
    output: countAt(usage, 'output_tokens'),
    cacheRead: countAt(objectAt(usage, 'input_token_details'), 'cached_tokens'),
    cacheWrite: countAt(objectAt(usage, 'input_token_details'), 'cache_write_tokens'),
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
