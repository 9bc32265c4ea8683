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
  TEXTS_UNCOUNTED,
} from './abi-texts.ts'
import { CoreError } from './errors.ts'
import type { TextsExports } from './exports.ts'
import { loadTexts } from './load.ts'
import { RegexHost } from './regex-host.ts'
import { createSet, type MaskRule } from './regex-mask.ts'
import { type RegexProblem, regexProblem } from './regex-problem.ts'

const formats = {
  Completions: TEXTS_COMPLETIONS,
  Messages: TEXTS_MESSAGES,
  Responses: TEXTS_RESPONSES,
  Embeddings: TEXTS_EMBEDDINGS,
} as const

const kinds = { request: TEXTS_REQUEST, answer: TEXTS_ANSWER, stream: TEXTS_STREAM } as const

export type TextsFormat = keyof typeof formats

/** Rules that are applied together. Guards apply in order; each sees texts as the ones before leave them. */
export interface GuardRules {
  readonly rules: readonly MaskRule[]
  /** If set, a match is reported as `rejectedBy`. */
  readonly rejects?: boolean
}

export interface TextsOptions {
  readonly format: TextsFormat
  readonly message: keyof typeof kinds
  /** Maximum number of bytes of a document or of an event, and of text that is held back. */
  readonly limit: number
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
  /** True if the request asks for a stream. */
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

/** Returns the thread's host of core-texts.wasm, or a new one after a trap. */
function textsHost(): RegexHost {
  if (shared === undefined || shared.core.trap !== undefined) shared = new RegexHost(loadTexts())
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
  rewriter({ format, message, limit }: TextsOptions): TextRewriter {
    const host = this.#host
    const handle = host.core.run('texts_new', () =>
      exportsOf(host).texts_new(this.#handle, formats[format], kinds[message], limit),
    )
    if (handle < 0) throw new CoreError(handle, 'making a rewriter')
    return new TextRewriter(host, handle)
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

  /** Call Guards.rewriter instead. */
  constructor(host: RegexHost, handle: number) {
    this.#host = host
    this.#handle = handle
  }

  /** Adds bytes of the message. Returns a copy of what is ready. */
  push(bytes: Uint8Array): Uint8Array {
    return this.#take(bytes, false)
  }

  /** Adds the last bytes. Returns a copy of everything that remains. */
  end(bytes: Uint8Array = new Uint8Array()): Uint8Array {
    return this.#take(bytes, true)
  }

  /**
   * Ends the message with an error in its format. In a stream, the events that were ready before an error
   * of `push` come first.
   */
  fail(status: number, message: string): Uint8Array {
    const host = this.#host
    const address = host.textSpace(message.length * 3)
    const length = host.put(message, address)
    return this.#output('texts_fail', (exports) =>
      exports.texts_fail(this.#handle, status, address, length),
    )
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

  /** Number of texts that a guard has replaced. */
  countOf(guard: number): number {
    return Math.max(0, exportsOf(this.#host).texts_count(this.#handle, guard))
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
    const length = host.put(bytes, address)
    return this.#output('texts_push', (exports) =>
      exports.texts_push(this.#handle, address, length, isEnd ? 1 : 0),
    )
  }

  #output(name: string, call: (exports: TextsExports) => number): Uint8Array {
    const host = this.#host
    const count = host.core.run(name, () => call(exportsOf(host)))
    host.trim()
    if (count < 0) throw new CoreError(count, 'rewriting texts')
    const from = exportsOf(host).texts_output(this.#handle) >>> 0
    return Uint8Array.prototype.slice.call(host.core.bytes, from, from + count)
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
