import { nameOfCode } from '../../../src/engines/core/errors.ts'
import { compileRegex, type Regex } from '../../../src/engines/core/regex.ts'
import { freeLater } from './free-later.ts'

/** Position of a match; `end` is exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** Why a pattern is refused: a code of the ABI, a message, and an index of the pattern. */
interface Problem {
  readonly code: number
  readonly message: string
  readonly offset: number
}

/** A pattern cannot be compiled. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
  readonly pattern: string
  /** Name of the reason, such as `REGEX_LOOKAROUND`. */
  readonly code: string
  /** Index of the error in the pattern. */
  readonly offset: number

  constructor(pattern: string, problem: Problem) {
    super(`${JSON.stringify(pattern)}: ${problem.message}`)
    this.pattern = pattern
    this.code = nameOfCode(problem.code)
    this.offset = problem.offset
  }
}

/**
 * A regular expression in RE2 syntax. Searching takes time linear in the text. Positions are indices of a string,
 * or byte offsets of UTF-8 in a Uint8Array.
 */
export class Pattern {
  readonly source: string
  readonly #regex: Regex

  /** @throws PatternError */
  constructor(source: string, options: { readonly ignoreCase?: boolean } = {}) {
    if (typeof source !== 'string') throw new TypeError('a pattern must be a string')
    this.source = source
    const outcome = compileRegex(source, { caseInsensitive: options.ignoreCase ?? false })
    if (!outcome.ok) throw new PatternError(source, outcome)
    this.#regex = freeLater(this, outcome.regex)
  }

  /** Whether the pattern matches anywhere in the text. */
  isMatch(text: string | Uint8Array): boolean {
    return this.#regex.isMatch(text)
  }

  /** Whether the pattern matches the whole text. */
  fullMatch(text: string | Uint8Array): boolean {
    return this.#regex.fullMatch(text)
  }

  /** The matches from left to right. */
  findAll(text: string | Uint8Array): Span[] {
    return this.#regex.findAll(text)
  }

  /** Frees memory at once. Otherwise it is freed when the pattern is collected. */
  [Symbol.dispose](): void {
    this.#regex.dispose()
  }
}
