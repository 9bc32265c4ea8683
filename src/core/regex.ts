import {
  ERROR_MEMORY,
  REGEX_CASE_INSENSITIVE,
  REGEX_DOT_ALL,
  REGEX_MATCH_ONLY,
  REGEX_MULTI_LINE,
} from './abi.ts'
import { CoreError } from './errors.ts'
import {
  compileIn,
  currentHost,
  put,
  type RegexHost,
  SPAN_BYTES,
  SPANS_AT_ONCE,
} from './regex-host.ts'
import { type RegexProblem, regexProblem } from './regex-problem.ts'
import { type Span, toStringSpans } from './regex-spans.ts'

export type { RegexProblem, Span }

export interface RegexOptions {
  /** As (?i): simple Unicode case folding. */
  readonly caseInsensitive?: boolean
  /** As (?m): ^ and $ also match at line feeds. */
  readonly multiLine?: boolean
  /** As (?s): the dot also matches a line feed. */
  readonly dotAll?: boolean
  /** No `find` or `findAll`: half the memory. */
  readonly matchOnly?: boolean
}

export type RegexOutcome =
  | { readonly ok: true; readonly regex: Regex }
  | ({ readonly ok: false } & RegexProblem)

/**
 * A compiled pattern. Time is linear in the text. Positions are indices of the string, or of bytes for
 * a Uint8Array (taken as UTF-8; what is not UTF-8 matches nothing). Lone surrogates of a string are
 * matched as U+FFFD. Owns memory of the core until `dispose`.
 */
export class Regex {
  readonly source: string
  readonly #flags: number
  #host: RegexHost
  #handle: number

  /** Use compileRegex. */
  constructor(source: string, flags: number, host: RegexHost, handle: number) {
    this.source = source
    this.#flags = flags
    this.#host = host
    this.#handle = handle
  }

  /** Does the pattern match anywhere in the text? */
  isMatch(text: string | Uint8Array): boolean {
    return this.#onText(text, (host, address, length) =>
      host.core.run('regex_is_match', (exports) =>
        exports.regex_is_match(this.#handle, address, length),
      ),
    )
  }

  /** Does the pattern match the whole text? */
  fullMatch(text: string | Uint8Array): boolean {
    return this.#onText(text, (host, address, length) =>
      host.core.run('regex_full_match', (exports) =>
        exports.regex_full_match(this.#handle, address, length),
      ),
    )
  }

  /** The first match, or undefined. */
  find(text: string | Uint8Array): Span | undefined {
    return this.#spans(text, 1)[0]
  }

  /** All matches from the left, not overlapping, empty ones included as in JavaScript. */
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

  /** The host with this regex in it; compiled again when a trap has taken the last one. */
  #ready(): RegexHost {
    if (this.#handle === 0) throw new Error(`regex used after it was disposed: ${this.source}`)
    if (this.#host.core.trap === undefined) return this.#host
    const host = currentHost()
    const handle = compileIn(host, this.source, this.#flags)
    if (handle < 0) throw new CoreError(handle, 'compiling a regex again after a trap')
    this.#host = host
    this.#handle = handle
    return host
  }

  /** Puts the text into the core and asks; a negative answer is a bug of ours. */
  #onText(
    text: string | Uint8Array,
    ask: (host: RegexHost, address: number, length: number) => number,
  ): boolean {
    const host = this.#ready()
    const capacity = typeof text === 'string' ? text.length * 3 : text.length
    const address = host.workspace(capacity) + SPAN_BYTES
    const answer = ask(host, address, put(host, address, text))
    host.trim()
    if (answer < 0) throw new CoreError(answer, 'matching')
    return answer !== 0
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

  /** Spans in bytes, by as many calls as it takes; or a code. */
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

/** Where the search goes on behind a match: one character further when it was empty. */
function resumeAt(memory: Buffer, address: number, length: number, last: Span | undefined): number {
  if (last === undefined) return length + 1
  if (last.start !== last.end) return last.end
  let next = last.end + 1
  while (next < length && ((memory[address + next] ?? 0) & 0xc0) === 0x80) next++
  return next
}

/** The flags of regex_compile. */
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
 * are refused: nothing that needs more than linear time gets in. Throws CoreError without memory.
 */
export function compileRegex(source: string, options: RegexOptions = {}): RegexOutcome {
  const host = currentHost()
  const flags = flagsOf(options)
  const handle = compileIn(host, source, flags)
  if (handle > 0) return { ok: true, regex: new Regex(source, flags, host, handle) }
  if (handle === ERROR_MEMORY) throw new CoreError(handle, 'compiling a regex')
  return { ok: false, ...regexProblem(source, handle, host.core.exports.last_error_offset()) }
}

/** Is this pattern one that routes and guards can use? Depends on nothing but the pattern. */
export function checkRegex(
  source: string,
): { readonly ok: true } | ({ readonly ok: false } & RegexProblem) {
  const outcome = compileRegex(source)
  if (!outcome.ok) return outcome
  outcome.regex.dispose()
  return { ok: true }
}
