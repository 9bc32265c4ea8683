/** Runs core.wasm and expressions for the playground. Pages may not compile WebAssembly; workers may. */
import {
  activationOf,
  type CelResult,
  compileCel,
  errorText,
  isCelError,
  parseJson,
  writeJson,
} from '../../../src/engines/cel/index.ts'
import { provideBuilt } from '../../../src/engines/core/built-files-browser.ts'
import { createRateLimiter, type RateUnit } from '../../../src/engines/core/rate.ts'
import { compileRegex } from '../../../src/engines/core/regex.ts'
import type { Builtin } from '../../../src/engines/core/regex-builtins.ts'
import { compileMask, type MaskRule } from '../../../src/engines/core/regex-mask.ts'
import { countTokens, type EncodingName } from '../../../src/engines/core/tokens.ts'
import { compileGuardMask } from '../../../src/engines/messages/mask/regex-guard.ts'
import type { GuardConfig } from '../../../src/gateway/backends/ai/policy/config.ts'

/** What the page asks for, by name. */
const jobs = { mask, tokens, expression, rate, guards }

export type Jobs = typeof jobs

/** Around replacements, so that they can be shown as such; no prompt has them. */
const [open, close] = ['\u{f0000}', '\u{f0001}']

interface MaskJob {
  readonly builtins: readonly { readonly name: Builtin; readonly replacement: string }[]
  readonly patterns: readonly string[]
  readonly text: string
}

/** Masks a text with the rules that compile, and reports the others. */
function mask({ builtins, patterns, text }: MaskJob) {
  const problems: string[] = []
  const rules: MaskRule[] = builtins.map(({ name, replacement }) => ({
    builtin: name,
    replacement: open + replacement + close,
  }))
  for (const [index, pattern] of patterns.entries()) {
    const outcome = compileRegex(pattern)
    if (!outcome.ok) {
      problems.push(`${pattern}: ${outcome.message}`)
      continue
    }
    outcome.regex.dispose()
    rules.push({ pattern, replacement: `${open}<PATTERN_${index + 1}>${close}` })
  }
  const compiled = compileMask(rules)
  if (!compiled.ok)
    return { parts: [], count: 0, holdBytes: undefined, ms: 0, problems: [compiled.message] }
  const masked = compiled.mask.apply(text)
  // One run is too short for the clock of a page.
  const times = Math.max(1, Math.min(100, Math.floor(500_000 / (text.length + 1))))
  const begun = performance.now()
  for (let n = 0; n < times; n++) compiled.mask.apply(text)
  const ms = (performance.now() - begun) / times
  const { holdBytes } = compiled.mask
  compiled.mask.dispose()
  return { parts: partsOf(masked.text), count: masked.count, holdBytes, ms, problems }
}

/** The masked text; replacements are apart from the rest. */
function partsOf(text: string): { readonly text: string; readonly isMask: boolean }[] {
  return text.split(open).flatMap((part, index) => {
    if (index === 0) return [{ text: part, isMask: false }]
    const end = part.indexOf(close)
    const rest = part.slice(end + close.length)
    return [
      { text: part.slice(0, end), isMask: true },
      { text: rest, isMask: false },
    ]
  })
}

interface GuardsJob {
  readonly guards: readonly GuardConfig[]
  /** Responses are masked in any case. */
  readonly phase: 'Request' | 'Response'
  readonly text: string
}

interface TriedGuard {
  readonly type: GuardConfig['type']
  /** `skipped`: the guard asks a service. */
  readonly outcome: 'allow' | 'mask' | 'reject' | 'skipped'
  readonly matches: number
  readonly refusal?: GuardConfig['refusal']
}

/** Runs guards in order, each on what the one before it has left. The last one is that which refuses. */
function guards({ guards: all, phase, text }: GuardsJob) {
  const tried: TriedGuard[] = []
  let left = text
  for (const guard of all) {
    const { type, refusal } = guard
    if (type !== 'regex') {
      tried.push({ type, outcome: 'skipped', matches: 0 })
      continue
    }
    const mask = compileGuardMask(guard)
    const { text: masked, count: matches } = mask.apply(left)
    mask.dispose()
    if (matches > 0 && guard.action === 'Reject' && phase === 'Request') {
      tried.push({ type, outcome: 'reject', matches, refusal })
      return { tried, text: undefined }
    }
    tried.push({ type, outcome: matches > 0 ? 'mask' : 'allow', matches })
    left = masked
  }
  return { tried, text: left }
}

const loaded = new Map<EncodingName, Promise<void>>()

async function tokens({
  text,
  encoding,
}: {
  readonly text: string
  readonly encoding: EncodingName
}) {
  const loading = loaded.get(encoding) ?? loadVocabulary(encoding)
  loaded.set(encoding, loading)
  await loading
  return countTokens(text, encoding)
}

async function loadVocabulary(encoding: EncodingName): Promise<void> {
  const { body, ok } = await fetch(`${encoding}.tokens.gz`)
  if (!ok || body === null) throw new Error(`The vocabulary ${encoding} could not be loaded.`)
  provideBuilt(encoding, await bytesOf(body.pipeThrough(new DecompressionStream('gzip'))))
}

const bytesOf = async (stream: ReadableStream): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(await new Response(stream).arrayBuffer())

/** Evaluates an expression with variables given as JSON. */
function expression({
  source,
  variables,
}: {
  readonly source: string
  readonly variables: string
}) {
  const compiled = compileCel(source)
  if (!compiled.ok) {
    const problem = compiled.problems.map(({ message }) => message).join('; ')
    return { problem, value: undefined }
  }
  const values = parseJson(variables)
  if (!isRecord(values))
    return { problem: 'The variables are not a JSON object.', value: undefined }
  const result = compiled.value.evaluate(activationOf(values))
  if (isCelError(result)) return { problem: errorText(result), value: undefined }
  const text = writeJson(result)
  return isCelError(text)
    ? { problem: errorText(text), value: undefined }
    : { problem: undefined, value: text }
}

const isRecord = (value: unknown): value is Readonly<Record<string, CelResult>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

interface RateJob {
  readonly rate: number
  readonly unit: RateUnit
  readonly burst: number
  /** Requests per second that are sent, evenly, for `seconds`. */
  readonly perSecond: number
  readonly seconds: number
}

/** For each second: how many requests a rate limit admits. */
function rate({ rate: units, unit, burst, perSecond, seconds }: RateJob) {
  const buckets = createRateLimiter().limit(1, { rate: units, unit, burst })
  return Array.from({ length: seconds }, (_, second) => {
    let admitted = 0
    for (let n = 0; n < perSecond; n++) {
      const now = second * 1000 + (n * 1000) / perSecond
      if (buckets.take(1, now)) admitted++
    }
    return admitted
  })
}

interface Message {
  readonly id: number
  readonly name: keyof Jobs
  readonly params: never
}

const scope = globalThis as unknown as {
  onmessage(message: { readonly data: Message }): void
  postMessage(answer: object): void
}

const ready = (async () => {
  const response = await fetch('core.wasm')
  if (!response.ok) throw new Error(`core.wasm could not be loaded: ${response.status}.`)
  provideBuilt('core.wasm', new Uint8Array(await response.arrayBuffer()))
})()

scope.onmessage = async ({ data: { id, name, params } }) => {
  try {
    await ready
    scope.postMessage({ id, value: await (jobs[name] as (params: never) => unknown)(params) })
  } catch (error) {
    scope.postMessage({ id, error: (error as Error).message })
  }
}
