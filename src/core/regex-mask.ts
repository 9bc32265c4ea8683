import { DETECT_CARD, DETECT_EMAIL, DETECT_PHONE, DETECT_SIN, DETECT_SSN } from './abi.ts'
import { CoreError } from './errors.ts'
import { flagsOf, type RegexOptions } from './regex.ts'
import { compileIn, currentHost, put, type RegexHost, SPAN_BYTES } from './regex-host.ts'
import { type RegexProblem, regexProblem } from './regex-problem.ts'

const builtins = {
  Ssn: DETECT_SSN,
  CreditCard: DETECT_CARD,
  PhoneNumber: DETECT_PHONE,
  Email: DETECT_EMAIL,
  CaSin: DETECT_SIN,
} as const

/** What the core recognises by itself; docs/regex.md says what each matches. */
export type Builtin = keyof typeof builtins

/** What to replace by what. Empty matches of a pattern mask nothing. */
export type MaskRule =
  | { readonly pattern: string; readonly options?: RegexOptions; readonly replacement: string }
  | { readonly builtin: Builtin; readonly replacement: string }

export type MaskOutcome =
  | { readonly ok: true; readonly mask: Mask }
  /** `rule` is the index of the rule with the bad pattern. */
  | ({ readonly ok: false; readonly rule: number } & RegexProblem)

export interface Masked {
  readonly text: string
  /** Replacements made. */
  readonly count: number
}

class BadRule {
  readonly rule: number
  readonly code: number
  readonly offset: number

  constructor(rule: number, code: number, offset: number) {
    this.rule = rule
    this.code = code
    this.offset = offset
  }
}

function addRule(host: RegexHost, set: number, rule: MaskRule, index: number): BadRule | undefined {
  const { exports } = host.core
  const handle = 'pattern' in rule ? compileIn(host, rule.pattern, flagsOf(rule.options ?? {})) : 0
  if (handle < 0) return new BadRule(index, handle, exports.last_error_offset())
  const address = host.workspace(rule.replacement.length * 3) + SPAN_BYTES
  const length = put(host, address, rule.replacement)
  const code = host.core.run('mask_add', () =>
    'pattern' in rule
      ? exports.mask_add(set, handle, address, length)
      : exports.mask_add_builtin(set, builtins[rule.builtin], address, length),
  )
  // The set keeps the regex for itself.
  if (handle > 0) exports.regex_free(handle)
  if (code < 0) throw new CoreError(code, 'adding a rule to a mask')
  return undefined
}

function createSet(host: RegexHost, rules: readonly MaskRule[]): number | BadRule {
  const set = host.core.run('mask_new', (exports) => exports.mask_new())
  if (set < 0) throw new CoreError(set, 'making a mask')
  for (const [index, rule] of rules.entries()) {
    const problem = addRule(host, set, rule, index)
    if (problem === undefined) continue
    host.core.exports.mask_free(set)
    return problem
  }
  return set
}

/**
 * Rules that work together: each finds its own matches, spans that overlap become one, replaced as the
 * one says that begins first (of those, the first rule). Owns memory of the core until `dispose`.
 */
export class Mask {
  readonly #rules: readonly MaskRule[]
  #host: RegexHost
  #set: number
  #whole: MaskStream | undefined

  /** Use compileMask. */
  constructor(rules: readonly MaskRule[], host: RegexHost, set: number) {
    this.#rules = rules
    this.#host = host
    this.#set = set
  }

  /**
   * Bytes that a stream holds back at most. Undefined: one of the patterns can stay undecided for any
   * length (`a+b`); who streams must then hold the whole text, or refuse to stream.
   */
  get holdBytes(): number | undefined {
    const bytes = this.#ready().core.exports.mask_hold(this.#set)
    return bytes < 0 ? undefined : bytes
  }

  /** Masks a whole text. Linear time, but for patterns that look far ahead of each of many matches. */
  apply(text: string): Masked {
    this.#ready()
    this.#whole ??= this.stream()
    return this.#whole.whole(text)
  }

  /** Does any rule find something to mask? */
  isMatch(text: string): boolean {
    return this.apply(text).count > 0
  }

  /** What a rule puts in the place of its matches. */
  replacementOf(rule: number): string {
    return this.#rules[rule]?.replacement ?? ''
  }

  /** A text that arrives in pieces; dispose it before the mask. */
  stream(): MaskStream {
    const host = this.#ready()
    const handle = host.core.run('stream_new', (exports) => exports.stream_new(this.#set))
    if (handle < 0) throw new CoreError(handle, 'making a mask stream')
    return new MaskStream(host, handle)
  }

  /** Frees the core's memory. Idempotent. */
  dispose(): void {
    this.#whole?.dispose()
    this.#whole = undefined
    if (this.#set > 0 && this.#host.core.trap === undefined) {
      this.#host.core.exports.mask_free(this.#set)
    }
    this.#set = 0
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  /** The host with this mask in it; made again when a trap has taken the last one. */
  #ready(): RegexHost {
    if (this.#set === 0) throw new Error('mask used after it was disposed')
    if (this.#host.core.trap === undefined) return this.#host
    const host = currentHost()
    const set = createSet(host, this.#rules)
    if (set instanceof BadRule) throw new CoreError(set.code, 'making a mask again after a trap')
    this.#whole = undefined
    this.#host = host
    this.#set = set
    return host
  }
}

/**
 * One text through a mask. What comes out in all does not depend on how the text is cut. After an error
 * (CoreTrap, or CoreError for want of memory) the rest of the text must not pass.
 */
export class MaskStream {
  readonly #host: RegexHost
  #handle: number
  /** First half of a surrogate pair whose second half has not come. */
  #half = ''

  /** Use Mask.stream. */
  constructor(host: RegexHost, handle: number) {
    this.#host = host
    this.#handle = handle
  }

  /** Takes more text; answers what is settled and masked. */
  push(text: string): string {
    const whole = this.#half + text
    const last = whole.charCodeAt(whole.length - 1)
    const isHalf = last >= 0xd800 && last < 0xdc00
    this.#half = isHalf ? whole.slice(-1) : ''
    return this.#take(isHalf ? whole.slice(0, -1) : whole, false).toString()
  }

  /** Takes the last text; answers all the rest. */
  end(text = ''): string {
    const whole = this.#half + text
    this.#half = ''
    return this.#take(whole, true).toString()
  }

  /** A whole text, whatever came before. One in which nothing was found is handed back, not decoded again. */
  whole(text: string): Masked {
    this.restart()
    const out = this.#take(text, true)
    const { count } = this
    return { text: count === 0 && text.isWellFormed() ? text : out.toString(), count }
  }

  /** As `push`, in bytes of UTF-8; the result is a copy. */
  pushBytes(bytes: Uint8Array): Uint8Array {
    return Uint8Array.prototype.slice.call(this.#take(bytes, false))
  }

  /** As `end`, in bytes. */
  endBytes(bytes: Uint8Array = new Uint8Array()): Uint8Array {
    return Uint8Array.prototype.slice.call(this.#take(bytes, true))
  }

  /**
   * As `pushBytes` and `endBytes`, but reports what is settled instead of writing it: `plain` bytes that
   * stay as they are, then `masked` bytes that a rule replaces (-1: no match begins; bytes that are masked
   * nevertheless belong to the match before).
   */
  pushEdits(
    bytes: Uint8Array,
    isEnd: boolean,
    onEdit: (plain: number, masked: number, rule: number) => void,
  ): void {
    this.#take(bytes, isEnd)
    const { core } = this.#host
    const count = core.exports.stream_edit_count(this.#handle)
    const from = (core.exports.stream_edits(this.#handle) >>> 0) >> 2
    const { words } = core
    for (let at = from; at < from + count * 3; at += 3) {
      onEdit(words[at] ?? 0, words[at + 1] ?? 0, words[at + 2] ?? -1)
    }
  }

  /** Replacements given out so far. */
  get count(): number {
    return this.#host.core.exports.stream_count(this.#handle)
  }

  /** Bytes held back now. */
  get heldBytes(): number {
    return this.#host.core.exports.stream_held(this.#handle)
  }

  /** Begins another text. */
  restart(): void {
    this.#half = ''
    this.#host.core.run('stream_reset', (exports) => exports.stream_reset(this.#handle))
  }

  /** Frees the core's memory. Idempotent. */
  dispose(): void {
    if (this.#handle > 0 && this.#host.core.trap === undefined) {
      this.#host.core.exports.stream_free(this.#handle)
    }
    this.#handle = 0
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  /** What came out, in the core's memory: valid until the next call. */
  #take(text: string | Uint8Array, isEnd: boolean): Buffer {
    const host = this.#host
    const capacity = typeof text === 'string' ? text.length * 3 : text.length
    const address = host.workspace(capacity) + SPAN_BYTES
    const length = put(host, address, text)
    const count = host.core.run('stream_push', (exports) =>
      exports.stream_push(this.#handle, address, length, isEnd ? 1 : 0),
    )
    host.trim()
    if (count < 0) throw new CoreError(count, 'masking')
    const from = host.core.exports.stream_output(this.#handle) >>> 0
    return host.core.bytes.subarray(from, from + count)
  }
}

/** Compiles rules, at most 64. Throws CoreError without memory. */
export function compileMask(rules: readonly MaskRule[]): MaskOutcome {
  const host = currentHost()
  const set = createSet(host, rules)
  if (typeof set === 'number') return { ok: true, mask: new Mask(rules, host, set) }
  const rule = rules[set.rule]
  const source = rule !== undefined && 'pattern' in rule ? rule.pattern : ''
  return { ok: false, rule: set.rule, ...regexProblem(source, set.code, set.offset) }
}
