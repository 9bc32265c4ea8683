import { WORDS_BAD_UTF8, WORDS_LONG_WORD } from './abi.ts'
import { nameOfCode } from './errors.ts'
import { patternMessages } from './pattern-messages.ts'

/** The reason why a pattern is refused. */
export interface RegexProblem {
  /** A REGEX_* code of the ABI. */
  readonly code: number
  /** Message for the pattern's author; ends with the number of the character (code point), from 1. */
  readonly message: string
  /** Index of the error in the source string. */
  readonly offset: number
}

/** Returns the problem for a negative code at a byte offset of a list of words, one a line. */
export function wordsProblem(lines: string, code: number, byteOffset: number): RegexProblem {
  const before = Buffer.from(lines).subarray(0, Math.max(0, byteOffset)).toString()
  const message = patternMessages.get(code) ?? nameOfCode(code)
  const word = before.split('\n').length
  const isOneWord = code === WORDS_LONG_WORD || code === WORDS_BAD_UTF8
  return { code, offset: before.length, message: isOneWord ? `${message} (word ${word})` : message }
}

/** Returns the problem for a negative code at a byte offset of the pattern. */
export function regexProblem(source: string, code: number, byteOffset: number): RegexProblem {
  const before = Buffer.from(source).subarray(0, Math.max(0, byteOffset)).toString()
  const message = patternMessages.get(code) ?? nameOfCode(code)
  const character = [...before].length + 1
  return { code, offset: before.length, message: `${message} (at character ${character})` }
}
