import {
  ERROR_MEMORY,
  REGEX_CASE_INSENSITIVE,
  REGEX_DOT_ALL,
  REGEX_MATCH_ONLY,
  REGEX_MULTI_LINE,
} from './abi.ts'
import { CoreError } from './errors.ts'
import { currentHost, type RegexHost, SPAN_BYTES, SPANS_AT_ONCE } from './regex-host.ts'
import { type RegexProblem, regexProblem } from './regex-problem.ts'
import { sizeOf } from './text-host.ts'

export type { RegexProblem } from './regex-problem.ts'

/** Position of a match; `end` is exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

export interface RegexOptions {
  /** Like (?i): simple Unicode case folding. */
  readonly caseInsensitive?: boolean
  /** Like (?m): ^ and $ also match at line feeds. */
  readonly multiLine?: boolean
  /** Like (?s): the dot also matches a line feed. */
  readonly dotAll?: boolean
  /** Disables `find` and `findAll`, which halves the memory. */
  readonly matchOnly?: boolean
}

export type RegexOutcome =
  | { readonly ok: true; readonly regex: Regex }
  | ({ readonly ok: false } & RegexProblem)

/**
 * A compiled pattern, which takes time linear in the text. Positions are indices of a string, or byte
 * offsets of a Uint8Array, which is read as UTF-8; invalid UTF-8 matches nothing. Lone surrogates of a
 * string match as U+FFFD. Occupies memory of the core until `dispose`.
 */
export class Regex {
  readonly source: string
  readonly #flags: number
  #host: RegexHost
  #handle: number

  /** Call compileRegex instead. */
  constructor(source: string, flags: number, host: RegexHost, handle: number) {
    this.source = source
    this.#flags = flags
    this.#host = host
    this.#handle = handle
  }

  /** Returns whether the pattern matches anywhere in the text. */
  isMatch(text: string | Uint8Array): boolean {
    return this.#onText(text, (host, address, length) =>
      host.core.run('regex_is_match', (exports) =>
        exports.regex_is_match(this.#handle, address, length),
      ),
    )
  }

  /** Returns whether the pattern matches the whole text. */
  fullMatch(text: string | Uint8Array): boolean {
    return this.#onText(text, (host, address, length) =>
      host.core.run('regex_full_match', (exports) =>
        exports.regex_full_match(this.#handle, address, length),
      ),
    )
  }

  /** Returns the first match, or undefined if there is none. */
  find(text: string | Uint8Array): Span | undefined {
    return this.#spans(text, 1)[0]
  }

  /** Returns all matches from left to right without overlaps. As in JavaScript, empty matches count. */
  findAll(text: string | Uint8Array): Span[] {
    return this.#spans(text, Number.POSITIVE_INFINITY)
  }

  /** Frees the core's memory; the regex may not be used afterwards. Idempotent. */
  dispose(): void {
    if (this.#handle > 0 && this.#host.core.trap === undefined) {
      this.#host.core.exports.regex_free(this.#handle)
    }
    this.#handle = 0
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  /** Returns the host with this regex; compiles it again if a trap has destroyed the last host. */
  #ready(): RegexHost {
    if (this.#handle === 0) throw new Error(`regex used after it was disposed: ${this.source}`)
    if (this.#host.core.trap === undefined) return this.#host
    const host = currentHost()
    const handle = host.compile(this.source, this.#flags)
    if (handle < 0) throw new CoreError(handle, 'compiling a regex again after a trap')
    this.#host = host
    this.#handle = handle
    return host
  }

  /** Copies the text to the core and calls `ask`. A negative result is a bug of the core. */
  #onText(
    text: string | Uint8Array,
    ask: (host: RegexHost, address: number, length: number) => number,
  ): boolean {
    const host = this.#ready()
    const address = host.textSpace(sizeOf(text))
    const code = ask(host, address, host.put(text, address))
    host.trim()
    if (code < 0) throw new CoreError(code, 'matching')
    return code !== 0
  }

  #spans(text: string | Uint8Array, limit: number): Span[] {
    let spans: Span[] = []
    let bytes = 0
    this.#onText(text, (host, address, length) => {
      bytes = length
      const found = this.#collect(host, address, length, limit)
      if (typeof found === 'number') return found
      spans = found
      return 1
    })
    return typeof text === 'string' && bytes !== text.length ? toStringSpans(text, spans) : spans
  }

  /** Returns up to `limit` spans in bytes, from as many calls as necessary, or a negative code. */
  #collect(host: RegexHost, address: number, length: number, limit: number): Span[] | number {
    const spans: Span[] = []
    const out = address - SPAN_BYTES
    let from = 0
    while (spans.length < limit && from <= length) {
      const wanted = Math.min(SPANS_AT_ONCE, limit - spans.length)
      const count = host.core.run('regex_find_all', (exports) =>
        exports.regex_find_all(this.#handle, address, length, from, out, wanted),
      )
      if (count < 0) return count
      const { words, bytes } = host.core
      for (let i = 0; i < count; i++) {
        spans.push({
          start: words[(out >> 2) + 2 * i] ?? 0,
          end: words[(out >> 2) + 2 * i + 1] ?? 0,
        })
      }
      if (count < wanted) break
      from = resumeAt(bytes, address, length, spans.at(-1))
    }
    return spans
  }
}

/** Returns where the search continues after a match: at its end, or a character later if it was empty. */
function resumeAt(memory: Buffer, address: number, length: number, last: Span | undefined): number {
  if (last === undefined) return length + 1
  if (last.start !== last.end) return last.end
  let next = last.end + 1
  while (next < length && ((memory[address + next] ?? 0) & 0xc0) === 0x80) next++
  return next
}

/** Number of UTF-16 units and of UTF-8 bytes of the character at `index`; lone surrogates become U+FFFD. */
function bytesAt(text: string, index: number): { units: number; bytes: number } {
  const point = text.codePointAt(index) ?? 0
  if (point < 0x80) return { units: 1, bytes: 1 }
  if (point < 0x800) return { units: 1, bytes: 2 }
  return point < 0x10000 ? { units: 1, bytes: 3 } : { units: 2, bytes: 4 }
}

/** Converts ascending byte spans of a string's UTF-8 to spans of the string's indices. */
function toStringSpans(text: string, spans: readonly Span[]): Span[] {
  let index = 0
  let offset = 0
  const indexOf = (byte: number) => {
    while (offset < byte) {
      const { units, bytes } = bytesAt(text, index)
      index += units
      offset += bytes
    }
    return index
  }
  return spans.map(({ start, end }) => ({ start: indexOf(start), end: indexOf(end) }))
}

/** Returns the flags for regex_compile. */
export function flagsOf(options: RegexOptions): number {
  return (
    (options.caseInsensitive ? REGEX_CASE_INSENSITIVE : 0) |
    (options.multiLine ? REGEX_MULTI_LINE : 0) |
    (options.dotAll ? REGEX_DOT_ALL : 0) |
    (options.matchOnly ? REGEX_MATCH_ONLY : 0)
  )
}

/**
 * Compiles a pattern in RE2's syntax (docs/regex.md). Look-around, back-references and atomic groups
 * are refused, because they need more than linear time. Throws CoreError if memory is short.
 */
export function compileRegex(source: string, options: RegexOptions = {}): RegexOutcome {
  const host = currentHost()
  const flags = flagsOf(options)
  const handle = host.compile(source, flags)
  if (handle > 0) return { ok: true, regex: new Regex(source, flags, host, handle) }
  if (handle === ERROR_MEMORY) throw new CoreError(handle, 'compiling a regex')
  return { ok: false, ...regexProblem(source, handle, host.core.exports.last_error_offset()) }
}

/** Checks whether routes and guards can use this pattern. The result depends only on the pattern. */
export function checkRegex(
  source: string,
): { readonly ok: true } | ({ readonly ok: false } & RegexProblem) {
  const outcome = compileRegex(source)
  if (!outcome.ok) return outcome
  outcome.regex.dispose()
  return { ok: true }
}
