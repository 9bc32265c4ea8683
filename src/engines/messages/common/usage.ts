/** Reads token counts in the formats of vendors, and writes them in the formats of clients. */
import { inputWithCache, type Usage } from '../chat.ts'
import { compact, type JsonObject, listAt, numberAt, objectAt, stringAt } from '../json/json.ts'

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
function usageOf(counts: Counts, cache: 'included' | 'separate'): Usage | undefined {
  const { input = 0, output = 0, kinds } = counts
  if (counts.input === undefined && counts.output === undefined) return undefined
  const isIncluded = cache === 'included'
  const cacheRead = isIncluded ? within(input, counts.cacheRead) : counts.cacheRead
  const left = input - (cacheRead ?? 0)
  const cacheWrite = isIncluded ? within(left, counts.cacheWrite) : counts.cacheWrite
  const reasoning = within(output, counts.reasoning)
  const cached = isIncluded ? (cacheRead ?? 0) + (cacheWrite ?? 0) : 0
  // This runs for each answer, and a list of the known counts would be slower.
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
function kindsOf(
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

export function readCompletionsUsage(usage: unknown): Usage | undefined {
  const input = countAt(usage, 'prompt_tokens')
  const total = countAt(usage, 'total_tokens')
  if (input === undefined && total === undefined) return undefined
  const details = objectAt(usage, 'prompt_tokens_details')
  const outputDetails = objectAt(usage, 'completion_tokens_details')
  const counts = {
    input,
    output: countAt(usage, 'completion_tokens') ?? Math.max(0, (total ?? 0) - (input ?? 0)),
    cacheRead: countAt(details, 'cached_tokens'),
    cacheWrite: countAt(details, 'cache_write_tokens'),
    reasoning: countAt(outputDetails, 'reasoning_tokens'),
    kinds: kindsOf(details, outputDetails),
  }
  return usageOf(counts, 'included')
}

export function readResponsesUsage(usage: unknown): Usage | undefined {
  const details = objectAt(usage, 'input_tokens_details')
  const outputDetails = objectAt(usage, 'output_tokens_details')
  const counts = {
    input: countAt(usage, 'input_tokens'),
    output: countAt(usage, 'output_tokens'),
    cacheRead: countAt(details, 'cached_tokens'),
    cacheWrite: countAt(details, 'cache_write_tokens'),
    reasoning: countAt(outputDetails, 'reasoning_tokens'),
    kinds: kindsOf(details, outputDetails),
  }
  return usageOf(counts, 'included')
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

/** Reads the usage of vendor C. The compactions of a request are billed in addition to its own counts. */
export function readMessagesUsage(usage: unknown): Usage | undefined {
  const own = messagesUsage(usage)
  const compactions = listAt(usage, 'iterations').filter(isCompaction)
  return own && compactions.reduce<Usage>((sum, one) => sumOfUsage(sum, messagesUsage(one)), own)
}

const isCompaction = (iteration: unknown): boolean => stringAt(iteration, 'type') === 'compaction'

function messagesUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: countAt(usage, 'input_tokens'),
    output: countAt(usage, 'output_tokens'),
    cacheRead: countAt(usage, 'cache_read_input_tokens'),
    cacheWrite: countAt(usage, 'cache_creation_input_tokens'),
  }
  return usageOf(counts, 'separate')
}

export function readConverseUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: countAt(usage, 'inputTokens'),
    output: countAt(usage, 'outputTokens'),
    cacheRead: countAt(usage, 'cacheReadInputTokens'),
    cacheWrite: countAt(usage, 'cacheWriteInputTokens'),
  }
  return usageOf(counts, 'separate')
}

/**
 * Reads the usage of vendor D, which counts thoughts, and what its own tools add to the prompt, separately.
 * `output` and `input` include them.
 */
export function readGenerateContentUsage(usage: unknown): Usage | undefined {
  const prompt = countAt(usage, 'promptTokenCount')
  const added = countAt(usage, 'toolUsePromptTokenCount')
  if (prompt === undefined && added === undefined) return undefined
  const input = (prompt ?? 0) + (added ?? 0)
  const reasoning = countAt(usage, 'thoughtsTokenCount')
  const output = (countAt(usage, 'candidatesTokenCount') ?? 0) + (reasoning ?? 0)
  const cacheRead = countAt(usage, 'cachedContentTokenCount')
  return usageOf({ input, output, cacheRead, reasoning }, 'included')
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

export function writeCompletionsUsage(usage: Usage): JsonObject {
  const { output, cacheRead, cacheWrite, reasoning } = usage
  const input = inputWithCache(usage)
  const hasCache = cacheRead !== undefined || cacheWrite !== undefined
  return compact({
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: hasCache
      ? compact({ cached_tokens: cacheRead, cache_write_tokens: cacheWrite })
      : undefined,
    completion_tokens_details:
      reasoning === undefined ? undefined : { reasoning_tokens: reasoning },
    cache_read_input_tokens: cacheRead,
    cache_creation_input_tokens: cacheWrite,
  })
}

export function writeMessagesUsage(usage: Usage | undefined): JsonObject {
  return compact({
    input_tokens: usage?.uncachedInput ?? 0,
    cache_creation_input_tokens: usage?.cacheWrite,
    cache_read_input_tokens: usage?.cacheRead,
    output_tokens: usage?.output ?? 0,
  })
}

export function writeResponsesUsage(usage: Usage | undefined): JsonObject | null {
  if (usage === undefined) return null
  const { output, cacheRead = 0, cacheWrite, reasoning = 0 } = usage
  const input = inputWithCache(usage)
  return {
    input_tokens: input,
    input_tokens_details: compact({ cached_tokens: cacheRead, cache_write_tokens: cacheWrite }),
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}
