import { CoreError } from './errors.ts'
import { patternMessages } from './pattern-messages.ts'
import { flagsOf, type RegexOptions } from './regex.ts'
import { type Builtin, builtinBits } from './regex-builtins.ts'
import { currentHost, type RegexHost } from './regex-host.ts'
import { type RegexProblem, regexProblem, wordsProblem } from './regex-problem.ts'
import { sizeOf } from './text-host.ts'

/** The replacement for matches of patterns unless a rule has another one. */
export const patternReplacement = '<masked>'

/** What to replace, and by what. Empty matches of a pattern are not replaced. */
export type MaskRule =
  | { readonly pattern: string; readonly options?: RegexOptions; readonly replacement: string }
  | { readonly builtin: Builtin; readonly replacement: string }
  /** Words and names, which match as a whole in upper or lower case. At most 10,000 words and 256 KiB. */
  | { readonly words: readonly string[]; readonly replacement: string }

export type MaskOutcome =
  | { readonly ok: true; readonly mask: Mask }
  /** `rule` is the index of the rule with the bad pattern or list of words. */
  | ({ readonly ok: false; readonly rule: number } & RegexProblem)

export interface Masked {
  readonly text: string
  /** Number of replacements. */
  readonly count: number
}

interface BadRule {
  readonly rule: number
  readonly code: number
  readonly offset: number
}

/** The words as the core reads them: one a line, without white space around them. */
const linesOf = (words: readonly string[]): string =>
  words.map((word) => word.trim().replaceAll('\n', ' ')).join('\n')

function addRule(host: RegexHost, set: number, rule: MaskRule, index: number): BadRule | undefined {
  if ('words' in rule) return addWords(host, set, rule, index)
  const { exports } = host.core
  const handle = 'pattern' in rule ? host.compile(rule.pattern, flagsOf(rule.options ?? {})) : 0
  if (handle < 0) return { rule: index, code: handle, offset: exports.last_error_offset() }
  const address = host.textSpace(sizeOf(rule.replacement))
  const length = host.put(rule.replacement, address)
  const code = host.core.run('mask_add', () =>
    'pattern' in rule
      ? exports.mask_add(set, handle, address, length)
      : exports.mask_add_builtin(set, builtinBits[rule.builtin], address, length),
  )
  // The set has its own reference to the regex.
  if (handle > 0) exports.regex_free(handle)
  if (code < 0) throw new CoreError(code, 'adding a rule to a mask')
  return undefined
}

function addWords(
  host: RegexHost,
  set: number,
  rule: Extract<MaskRule, { words: unknown }>,
  index: number,
): BadRule | undefined {
  const { exports } = host.core
  const list = Buffer.from(linesOf(rule.words))
  const address = host.textSpace(list.length + sizeOf(rule.replacement))
  const text = address + host.put(list, address)
  const length = host.put(rule.replacement, text)
  const code = host.core.run('mask_add_words', () =>
    exports.mask_add_words(set, address, list.length, text, length),
  )
  host.trim()
  if (code >= 0) return undefined
  if (!patternMessages.has(code)) throw new CoreError(code, 'adding a list of words to a mask')
  return { rule: index, code, offset: exports.last_error_offset() }
}

/** Compiles rules to a mask set of the host: its handle, or the rule that is wrong. */
export function createSet(host: RegexHost, rules: readonly MaskRule[]): number | BadRule {
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
 * A set of rules that are applied together. Each rule finds its own matches. Overlapping matches
 * become one, with the replacement of the match that begins first; if several begin at the same place,
 * the first rule wins. Occupies memory of the core until `dispose`.
 */
export class Mask {
  readonly #rules: readonly MaskRule[]
  #host: RegexHost
  #set: number
  #whole: MaskStream | undefined

  /** Call compileMask instead. */
  constructor(rules: readonly MaskRule[], host: RegexHost, set: number) {
    this.#rules = rules
    this.#host = host
    this.#set = set
  }

  /**
   * Maximum number of bytes that a stream holds back. Undefined if a pattern can stay undecided for
   * any length (`a+b`): then hold the whole text back, or refuse to stream.
   */
  get holdBytes(): number | undefined {
    const bytes = this.#ready().core.exports.mask_hold(this.#set)
    return bytes < 0 ? undefined : bytes
  }

  /**
   * Masks a whole text, in linear time except for patterns that look far ahead of each of many matches. Calls
   * `onMatch` with the rule of each replacement.
   */
  apply(text: string, onMatch?: (rule: number) => void): Masked {
    this.#ready()
    this.#whole ??= this.stream()
    const masked = this.#whole.whole(text)
    if (onMatch !== undefined && masked.count > 0) this.#whole.eachMatch(onMatch)
    return masked
  }

  /** Returns whether any rule finds something to mask. */
  isMatch(text: string): boolean {
    return this.apply(text).count > 0
  }

  /** Names a rule: its builtin, `words`, or its position among the rules. */
  nameOf(rule: number): string {
    const found = this.#rules[rule]
    if (found !== undefined && 'words' in found) return 'words'
    return found !== undefined && 'builtin' in found
      ? `builtin ${found.builtin}`
      : `pattern ${rule}`
  }

  /** Returns the text that replaces matches of a rule. */
  replacementOf(rule: number): string {
    return this.#rules[rule]?.replacement ?? ''
  }

  /** Creates a stream for a text that arrives in pieces. Dispose it before the mask. */
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

  /** Returns the host with this mask; creates the mask again if a trap has destroyed the last host. */
  #ready(): RegexHost {
    if (this.#set === 0) throw new Error('mask used after it was disposed')
    if (this.#host.core.trap === undefined) return this.#host
    const host = currentHost()
    const set = createSet(host, this.#rules)
    if (typeof set !== 'number') throw new CoreError(set.code, 'making a mask again after a trap')
    this.#whole = undefined
    this.#host = host
    this.#set = set
    return host
  }
}

/**
 * Masks one text that arrives in pieces. The output does not depend on how the text is split. After an
 * error (CoreTrap, or CoreError if memory is short) the rest of the text must not be forwarded.
 */
export class MaskStream {
  readonly #host: RegexHost
  #handle: number
  /** First half of a surrogate pair whose second half has not arrived; otherwise empty. */
  #half = ''

  /** Call Mask.stream instead. */
  constructor(host: RegexHost, handle: number) {
    this.#host = host
    this.#handle = handle
  }

  /** Adds text. Returns the masked text that is decided. */
  push(text: string): string {
    const whole = this.#half + text
    const last = whole.charCodeAt(whole.length - 1)
    const isHalf = last >= 0xd800 && last < 0xdc00
    this.#half = isHalf ? whole.slice(-1) : ''
    return this.#take(isHalf ? whole.slice(0, -1) : whole, false).toString()
  }

  /** Adds the last text. Returns all of the remaining masked text. */
  end(text = ''): string {
    const whole = this.#half + text
    this.#half = ''
    return this.#take(whole, true).toString()
  }

  /** Masks a whole text independently of earlier calls. Returns the same string if nothing was found. */
  whole(text: string): Masked {
    this.restart()
    const out = this.#take(text, true)
    const { count } = this
    return { text: count === 0 && text.isWellFormed() ? text : out.toString(), count }
  }

  /** Like `push`, for UTF-8 bytes; the result is a copy. */
  pushBytes(bytes: Uint8Array): Uint8Array {
    return Uint8Array.prototype.slice.call(this.#take(bytes, false))
  }

  /** Like `end`, for UTF-8 bytes; the result is a copy. */
  endBytes(bytes: Uint8Array = new Uint8Array()): Uint8Array {
    return Uint8Array.prototype.slice.call(this.#take(bytes, true))
  }

  /**
   * Like `pushBytes`, or `endBytes` with `isEnd`, but reports edits instead of bytes. In each edit,
   * `plain` bytes stay as they are, and the following `masked` bytes are replaced by the text of
   * `rule`. With rule -1 no new match begins: the masked bytes belong to the previous match.
   */
  pushEdits(
    bytes: Uint8Array,
    isEnd: boolean,
    onEdit: (plain: number, masked: number, rule: number) => void,
  ): void {
    this.#take(bytes, isEnd)
    this.#eachEdit(onEdit)
  }

  /** Calls `onMatch` with the rule of each replacement of the last call. */
  eachMatch(onMatch: (rule: number) => void): void {
    this.#eachEdit((_, __, rule) => {
      if (rule >= 0) onMatch(rule)
    })
  }

  #eachEdit(onEdit: (plain: number, masked: number, rule: number) => void): void {
    const { core } = this.#host
    const count = core.exports.stream_edit_count(this.#handle)
    const from = (core.exports.stream_edits(this.#handle) >>> 0) >> 2
    const { words } = core
    for (let at = from; at < from + count * 3; at += 3) {
      onEdit(words[at] ?? 0, words[at + 1] ?? 0, words[at + 2] ?? -1)
    }
  }

  /** Number of replacements so far. */
  get count(): number {
    return this.#host.core.exports.stream_count(this.#handle)
  }

  /** Number of bytes that are held back now. */
  get heldBytes(): number {
    return this.#host.core.exports.stream_held(this.#handle)
  }

  /** Discards the current text and starts another one. */
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

  /** Adds text and returns the output, which lies in the core's memory until the next call. */
  #take(text: string | Uint8Array, isEnd: boolean): Buffer {
    const host = this.#host
    const address = host.textSpace(sizeOf(text))
    const length = host.put(text, address)
    const count = host.core.run('stream_push', (exports) =>
      exports.stream_push(this.#handle, address, length, isEnd ? 1 : 0),
    )
    host.trim()
    if (count < 0) throw new CoreError(count, 'masking')
    const from = host.core.exports.stream_output(this.#handle) >>> 0
    return host.core.bytes.subarray(from, from + count)
  }
}

/** Compiles at most 64 rules. Throws CoreError if memory is short. */
export function compileMask(rules: readonly MaskRule[]): MaskOutcome {
  const host = currentHost()
  const set = createSet(host, rules)
  if (typeof set === 'number') return { ok: true, mask: new Mask(rules, host, set) }
  const rule = rules[set.rule]
  if (rule !== undefined && 'words' in rule) {
    return { ok: false, rule: set.rule, ...wordsProblem(linesOf(rule.words), set.code, set.offset) }
  }
  const source = rule !== undefined && 'pattern' in rule ? rule.pattern : ''
  return { ok: false, rule: set.rule, ...regexProblem(source, set.code, set.offset) }
}
