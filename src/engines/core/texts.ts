/**
 * Rewrites messages to language models and their answers: texts are masked and everything else is kept. Uses
 * core-texts.wasm, which is loaded at the first use.
 */
import {
  TEXTS_ANSWER,
  TEXTS_BYTES,
  TEXTS_CACHED_TOKENS,
  TEXTS_COMPLETIONS,
  TEXTS_EMBEDDINGS,
  TEXTS_FLAGS,
  TEXTS_HAS_INPUT,
  TEXTS_HAS_OUTPUT,
  TEXTS_INPUT_TOKENS,
  TEXTS_IS_STREAM,
  TEXTS_MESSAGES,
  TEXTS_MODEL,
  TEXTS_OUTPUT_TOKENS,
  TEXTS_RECORD_SIZE,
  TEXTS_REJECTED,
  TEXTS_REQUEST,
  TEXTS_RESPONSES,
  TEXTS_STREAM,
  TEXTS_TOKEN_COUNT,
  TEXTS_UNCOUNTED,
} from './abi-texts.ts'
import { CoreError } from './errors.ts'
import type { TextsExports } from './exports.ts'
import { loadTexts } from './load.ts'
import { RegexHost } from './regex-host.ts'
import { createSet, type MaskRule } from './regex-mask.ts'
import { type RegexProblem, regexProblem } from './regex-problem.ts'

export const textsFormats = {
  Completions: TEXTS_COMPLETIONS,
  Messages: TEXTS_MESSAGES,
  Responses: TEXTS_RESPONSES,
  Embeddings: TEXTS_EMBEDDINGS,
  VendorCTokenCount: TEXTS_TOKEN_COUNT,
} as const

const kinds = { request: TEXTS_REQUEST, answer: TEXTS_ANSWER, stream: TEXTS_STREAM } as const

export type TextsFormat = keyof typeof textsFormats

/** Rules that are applied together. Guards apply in order; each sees texts as the ones before leave them. */
export interface GuardRules {
  readonly rules: readonly MaskRule[]
  /** If set, a match is reported as `rejectedBy`. */
  readonly rejects?: boolean
}

export interface TextsOptions {
  readonly format: TextsFormat
  readonly message: keyof typeof kinds
  /** Maximum number of bytes of a document or of an event. */
  readonly limit: number
  /** Maximum number of bytes of a stream that are held back; `limit` if omitted. */
  readonly heldLimit?: number
}

/** Matches of a rule that a guard has replaced. */
interface RuleMatches {
  /** Index of the rule; undefined for matches in texts that an answer repeats. */
  readonly rule: number | undefined
  readonly count: number
}

/** Bytes [start, end) of the memory of the core. */
export interface TextSpan {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
}

/** What is known of a message so far. */
export interface TextsDetails {
  /** Undefined if the answer has not reported it. */
  readonly inputTokens: number | undefined
  readonly outputTokens: number | undefined
  /** Tokens of the input that `inputTokens` does not include. */
  readonly cachedTokens: number
  /** Bytes of the texts that were read. */
  readonly textBytes: number
  /** Bytes of streamed text since the last report of usage. */
  readonly uncountedBytes: number
  /** Whether the request asks for a stream. */
  readonly isStream: boolean
  /** Index of the first guard that rejects the texts. */
  readonly rejectedBy: number | undefined
  /** Undefined if the message does not name one. */
  readonly model: string | undefined
}

export type GuardsOutcome =
  | { readonly ok: true; readonly guards: Guards }
  /** `guard` and `rule` are the indexes of the rule with the bad pattern. */
  | ({ readonly ok: false; readonly guard: number; readonly rule: number } & RegexProblem)

let shared: RegexHost | undefined

/**
 * Memory to begin with, in pages of 64 KiB: enough for a few policies and 200 streams at once, because
 * growth replaces all views. Pages that are not used are not resident.
 */
const reservedPages = 32

/** Returns the thread's host of core-texts.wasm, or a new one after a trap. */
function textsHost(): RegexHost {
  if (shared === undefined || shared.core.trap !== undefined) {
    shared = new RegexHost(loadTexts())
    shared.core.run('reserve', (exports) => exports.reserve(reservedPages))
  }
  return shared
}

/** Size of the thread's memory for rewriters in bytes; it never shrinks. */
export function textMemoryBytes(): number {
  return shared?.core.bytes.length ?? 0
}

const exportsOf = (host: RegexHost): TextsExports => host.core.exports as TextsExports

/** Guards in order. Occupies memory of the core until `dispose`. */
export class Guards {
  readonly #host: RegexHost
  #handle: number

  /** Call compileGuards instead. */
  constructor(host: RegexHost, handle: number) {
    this.#host = host
    this.#handle = handle
  }

  /** Creates a rewriter of one message. @throws CoreError if memory is short. */
  rewriter({ format, message, limit, heldLimit }: TextsOptions): TextRewriter {
    const host = this.#host
    const handle = host.core.run('texts_new', () =>
      exportsOf(host).texts_new(this.#handle, textsFormats[format], kinds[message], limit),
    )
    if (handle < 0) throw new CoreError(handle, 'making a rewriter')
    if (heldLimit !== undefined) exportsOf(host).texts_hold(handle, heldLimit)
    return new TextRewriter(host, handle)
  }

  /** Whether the core has trapped, so that the guards must be compiled again. */
  get hasTrapped(): boolean {
    return this.#host.core.trap !== undefined
  }

  /** Frees the core's memory once the rewriters are disposed, too. Idempotent. */
  dispose(): void {
    if (this.#handle > 0 && this.#host.core.trap === undefined) {
      exportsOf(this.#host).guards_free(this.#handle)
    }
    this.#handle = 0
  }
}

/** Rewrites one message. After an error (CoreTrap, CoreError) the rest of it must not be forwarded. */
export class TextRewriter {
  readonly #host: RegexHost
  #handle: number
  readonly #span: { -readonly [Name in keyof TextSpan]: TextSpan[Name] }

  /** Call Guards.rewriter instead. */
  constructor(host: RegexHost, handle: number) {
    this.#host = host
    this.#handle = handle
    this.#span = { bytes: host.core.bytes, start: 0, end: 0 }
  }

  /** Adds bytes of the message. Returns a copy of what is ready. */
  push(bytes: Uint8Array): Uint8Array {
    return this.#take(bytes, false)
  }

  /** Adds the last bytes. Returns a copy of everything that remains. */
  end(bytes: Uint8Array = new Uint8Array()): Uint8Array {
    return this.#take(bytes, true)
  }

  /** Adds the last bytes, for what is known of the message. */
  check(bytes: Uint8Array): void {
    const host = this.#host
    const address = host.textSpace(bytes.length)
    this.#push(address, host.put(bytes, address), true)
  }

  /**
   * Adds bytes [start, cutStart) and [cutEnd, end) of the message. Returns what is ready, which is valid until
   * the next call of any rewriter. Creates no objects.
   */
  pushSpan(bytes: Buffer, start: number, cutStart: number, cutEnd: number, end: number): TextSpan {
    const host = this.#host
    const address = host.textSpace(end - start)
    const { bytes: memory } = host.core
    const before = bytes.copy(memory, address, start, cutStart)
    const length = before + bytes.copy(memory, address + before, cutEnd, end)
    const count = this.#push(address, length, false)
    const span = this.#span
    span.bytes = host.core.bytes
    span.start = exportsOf(host).texts_output(this.#handle) >>> 0
    span.end = span.start + count
    return span
  }

  /**
   * Ends the message with an error in its format. In a stream, the events that were ready before an error
   * of `push` come first.
   */
  fail(status: number, message: string): Uint8Array {
    const host = this.#host
    const address = host.textSpace(message.length * 3)
    const length = host.put(message, address)
    const count = host.core.run('texts_fail', () =>
      exportsOf(host).texts_fail(this.#handle, status, address, length),
    )
    if (count < 0) throw new CoreError(count, 'writing an error')
    return this.#output(count)
  }

  get details(): TextsDetails {
    const { core } = this.#host
    return core.withScratch(TEXTS_RECORD_SIZE, (record) => {
      core.run('texts_record', () => exportsOf(this.#host).texts_record(this.#handle, record))
      const float = (offset: number) => core.floats[(record + offset) >> 3] ?? 0
      const word = (offset: number) => core.words[(record + offset) >> 2] ?? 0
      const flags = word(TEXTS_FLAGS)
      const [start, end] = [word(TEXTS_MODEL) >>> 0, word(TEXTS_MODEL + 4) >>> 0]
      const rejected = word(TEXTS_REJECTED)
      return {
        inputTokens: flags & TEXTS_HAS_INPUT ? float(TEXTS_INPUT_TOKENS) : undefined,
        outputTokens: flags & TEXTS_HAS_OUTPUT ? float(TEXTS_OUTPUT_TOKENS) : undefined,
        cachedTokens: float(TEXTS_CACHED_TOKENS),
        textBytes: float(TEXTS_BYTES),
        uncountedBytes: float(TEXTS_UNCOUNTED),
        isStream: (flags & TEXTS_IS_STREAM) !== 0,
        rejectedBy: rejected < 0 ? undefined : rejected,
        model: end > start ? core.bytes.toString('utf8', start, end) : undefined,
      }
    })
  }

  /** Matches that a guard has replaced, in the order in which its rules matched first. */
  matchesOf(guard: number): RuleMatches[] {
    const exports = exportsOf(this.#host)
    const count = Math.max(0, exports.texts_matches(this.#handle, guard))
    const from = (exports.texts_match_list(this.#handle, guard) >>> 0) >> 2
    const { words } = this.#host.core
    return Array.from({ length: count }, (_, at) => {
      const rule = words[from + at * 2] ?? 0
      return { rule: rule < 0 ? undefined : rule, count: words[from + at * 2 + 1] ?? 0 }
    })
  }

  /** Frees the core's memory. Idempotent. */
  dispose(): void {
    if (this.#handle > 0 && this.#host.core.trap === undefined) {
      exportsOf(this.#host).texts_free(this.#handle)
    }
    this.#handle = 0
  }

  #take(bytes: Uint8Array, isEnd: boolean): Uint8Array {
    const host = this.#host
    const address = host.textSpace(bytes.length)
    return this.#output(this.#push(address, host.put(bytes, address), isEnd))
  }

  /** Pushes bytes of the core's memory. Returns how many come out. */
  #push(address: number, length: number, isEnd: boolean): number {
    const host = this.#host
    const { core } = host
    if (core.trap !== undefined) throw core.trap
    let count: number
    try {
      count = exportsOf(host).texts_push(this.#handle, address, length, isEnd ? 1 : 0)
    } catch (error) {
      throw core.failed('texts_push', error)
    }
    core.refresh()
    host.trim()
    if (count < 0) throw new CoreError(count, 'rewriting texts')
    return count
  }

  #output(count: number): Uint8Array {
    const { core } = this.#host
    core.refresh()
    const from = exportsOf(this.#host).texts_output(this.#handle) >>> 0
    return Uint8Array.prototype.slice.call(core.bytes, from, from + count)
  }
}

/** Compiles guards, at most 64 of at most 64 rules each. @throws CoreError if memory is short. */
export function compileGuards(all: readonly GuardRules[]): GuardsOutcome {
  const host = textsHost()
  const handle = host.core.run('guards_new', () => exportsOf(host).guards_new())
  if (handle < 0) throw new CoreError(handle, 'making guards')
  for (const [guard, { rules, rejects }] of all.entries()) {
    const set = createSet(host, rules)
    if (typeof set !== 'number') {
      exportsOf(host).guards_free(handle)
      const rule = rules[set.rule]
      const source = rule !== undefined && 'pattern' in rule ? rule.pattern : ''
      return { ok: false, guard, rule: set.rule, ...regexProblem(source, set.code, set.offset) }
    }
    const code = exportsOf(host).guards_add(handle, set, rejects === true ? 1 : 0)
    // The chain has its own reference to the set.
    exportsOf(host).mask_free(set)
    if (code < 0) throw new CoreError(code, 'adding a guard')
  }
  return { ok: true, guards: new Guards(host, handle) }
}
