/** Reads token counts in the formats of vendors, and writes them in the formats of clients. */
import type { Usage } from '../chat.ts'
import { compact, type JsonObject, numberAt, objectAt } from '../json.ts'

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
function usageOf(counts: Counts, cache: 'included' | 'separate'): Usage | undefined {
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
function kindsOf(
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

export function readCompletionsUsage(usage: unknown): Usage | undefined {
  const input = numberAt(usage, 'prompt_tokens')
  const total = numberAt(usage, 'total_tokens')
  if (input === undefined && total === undefined) return undefined
  const details = objectAt(usage, 'prompt_tokens_details')
  const outputDetails = objectAt(usage, 'completion_tokens_details')
  const counts = {
    input,
    output: numberAt(usage, 'completion_tokens') ?? Math.max(0, (total ?? 0) - (input ?? 0)),
    cacheRead: numberAt(details, 'cached_tokens'),
    cacheWrite: numberAt(details, 'cache_write_tokens'),
    reasoning: numberAt(outputDetails, 'reasoning_tokens'),
    kinds: kindsOf(details, outputDetails),
  }
  return usageOf(counts, 'included')
}

export function readResponsesUsage(usage: unknown): Usage | undefined {
  const details = objectAt(usage, 'input_tokens_details')
  const outputDetails = objectAt(usage, 'output_tokens_details')
  const counts = {
    input: numberAt(usage, 'input_tokens'),
    output: numberAt(usage, 'output_tokens'),
    cacheRead: numberAt(details, 'cached_tokens'),
    reasoning: numberAt(outputDetails, 'reasoning_tokens'),
    kinds: kindsOf(details, outputDetails),
  }
  return usageOf(counts, 'included')
}

/** Reads the usage of one response in a realtime session. */
export function readRealtimeUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: numberAt(usage, 'input_tokens'),
    output: numberAt(usage, 'output_tokens'),
    cacheRead: numberAt(objectAt(usage, 'input_token_details'), 'cached_tokens'),
  }
  return usageOf(counts, 'included')
}

export function readMessagesUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: numberAt(usage, 'input_tokens'),
    output: numberAt(usage, 'output_tokens'),
    cacheRead: numberAt(usage, 'cache_read_input_tokens'),
    cacheWrite: numberAt(usage, 'cache_creation_input_tokens'),
  }
  return usageOf(counts, 'separate')
}

export function readConverseUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: numberAt(usage, 'inputTokens'),
    output: numberAt(usage, 'outputTokens'),
    cacheRead: numberAt(usage, 'cacheReadInputTokens'),
    cacheWrite: numberAt(usage, 'cacheWriteInputTokens'),
  }
  return usageOf(counts, 'separate')
}

/** Reads the usage of vendor D, which counts thoughts separately; `output` includes them. */
export function readGenerateContentUsage(usage: unknown): Usage | undefined {
  const input = numberAt(usage, 'promptTokenCount')
  if (input === undefined) return undefined
  const reasoning = numberAt(usage, 'thoughtsTokenCount')
  const output = (numberAt(usage, 'candidatesTokenCount') ?? 0) + (reasoning ?? 0)
  const cacheRead = numberAt(usage, 'cachedContentTokenCount')
  return usageOf({ input, output, cacheRead, reasoning }, 'included')
}

/** Merges the counts of a later event into earlier ones; null and omitted counts change nothing. */
export function laterCounts(before: JsonObject, now: JsonObject | undefined): JsonObject {
  const known = Object.entries(now ?? {}).filter(([, value]) => value != null)
  return { ...before, ...Object.fromEntries(known) }
}

export function writeCompletionsUsage(usage: Usage): JsonObject {
  const { input, output, cacheRead, cacheWrite, reasoning } = usage
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
  const { input, output, cacheRead = 0, reasoning = 0 } = usage
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}
