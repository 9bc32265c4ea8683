/** Token counts of responses, as far as the formats share them. */
import type { Usage } from '../chat.ts'
import { type JsonObject, numberAt, objectAt } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'

/** Token counts as a provider reports them; undefined if it does not. */
interface Counts {
  readonly input: number | undefined
  readonly output: number | undefined
  readonly cacheRead?: number | undefined
  readonly cacheReadAudio?: number | undefined
  readonly cacheWrite?: number | undefined
  readonly cacheWrite1h?: number | undefined
  readonly reasoning?: number | undefined
  readonly kinds?: Usage['kinds'] | undefined
  readonly calls?: Usage['calls'] | undefined
  readonly service?: string | undefined
  readonly geography?: string | undefined
  readonly speed?: string | undefined
}

/** No message has more tokens. */
const maxCount = 1e12

/**
 * Returns a count; undefined if it is none that a message can have: limits and metrics must never get a negative
 * number of tokens, or one that is not exact.
 */
export function countAt(value: unknown, name: string): number | undefined {
  const count = numberAt(value, name)
  return count !== undefined && Number.isInteger(count) && count >= 0 && count <= maxCount
    ? count
    : undefined
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
  addPriced(usage, counts)
  return usage
}

/** Adds what only prices depend on. */
function addPriced(usage: Writable<Usage>, counts: Counts): void {
  const cachedAudio = within(usage.cacheRead ?? 0, counts.cacheReadAudio)
  const longWrite = within(usage.cacheWrite ?? 0, counts.cacheWrite1h)
  const { calls, service, geography, speed } = counts
  if (cachedAudio) usage.cacheReadAudio = cachedAudio
  if (longWrite) usage.cacheWrite1h = longWrite
  if (calls !== undefined) usage.calls = calls
  if (service !== undefined) usage.service = service
  if (geography !== undefined) usage.geography = geography
  if (speed !== undefined) usage.speed = speed
}

/** Returns calls that a provider bills; undefined if there are none. */
export const callsOf = (name: string, count: number | undefined): Usage['calls'] =>
  count === undefined || count === 0 ? undefined : { [name]: count }

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
  const details = objectAt(usage, 'input_token_details')
  const counts = {
    input: countAt(usage, 'input_tokens'),
    output: countAt(usage, 'output_tokens'),
    cacheRead: countAt(details, 'cached_tokens'),
    cacheReadAudio: countAt(objectAt(details, 'cached_tokens_details'), 'audio_tokens'),
    cacheWrite: countAt(details, 'cache_write_tokens'),
    kinds: kindsOf(details, objectAt(usage, 'output_token_details')),
  }
  return usageOf(counts, 'included')
}

/** Maximum number of items of a list in usage, because it is read again with the counts of later events. */
const maxUsageItems = 1000

/** The latest counts of a streamed response. */
export class LatestCounts {
  /** Without a prototype, so that every name is a plain member. */
  readonly #counts: Record<string, unknown> = Object.create(null)

  /**
   * Adds the counts of a later event; null and omitted counts change nothing. Returns all counts so far.
   * @throws LlmError 502 for a list with too many items
   */
  add(now: JsonObject | undefined): JsonObject {
    for (const [name, value] of Object.entries(now ?? {})) {
      if (value == null) continue
      if (Array.isArray(value) && value.length > maxUsageItems) {
        throw new LlmError(502, `usage.${name} has more than ${maxUsageItems} items`)
      }
      this.#counts[name] = value
    }
    return this.#counts
  }
}

const summed = ['cacheRead', 'cacheReadAudio', 'cacheWrite', 'cacheWrite1h', 'reasoning'] as const

/** Adds up usage that a provider reports separately. */
export function sumOfUsage(a: Usage, b: Usage | undefined): Usage {
  if (b === undefined) return a
  const sum: Writable<Usage> = {
    ...a,
    input: a.input + b.input,
    uncachedInput: a.uncachedInput + b.uncachedInput,
    output: a.output + b.output,
  }
  for (const name of summed) {
    const [one, other] = [a[name], b[name]]
    if (one !== undefined || other !== undefined) sum[name] = (one ?? 0) + (other ?? 0)
  }
  for (const name of ['kinds', 'calls'] as const) {
    const all = sumOfCounts(a[name], b[name])
    if (all !== undefined) sum[name] = all
  }
  return sum
}

function sumOfCounts(
  a: Readonly<Record<string, number>> | undefined,
  b: Readonly<Record<string, number>> | undefined,
): Readonly<Record<string, number>> | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const added = Object.entries(b).map(([name, count]) => [name, (a[name] ?? 0) + count])
  return { ...a, ...Object.fromEntries(added) }
}
