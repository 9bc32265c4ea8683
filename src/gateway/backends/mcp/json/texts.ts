/** Finds the texts in a JSON value, at any depth. */
import { endOfString } from '../../../../engines/json/parse.ts'
import {
  closeBrace,
  closeBracket,
  isSpace,
  openBrace,
  openBracket,
  quote,
} from '../../../../engines/json/syntax.ts'
import { type JsonNode, stringIn } from './node.ts'

/** A string, a key or a number at [start, end) of the text. */
export interface JsonText extends Pick<JsonNode, 'start' | 'end'> {
  /** The value of the string, or the number as it is written. */
  readonly value: string
}

const colon = 0x3a
const minus = 0x2d

/**
 * Returns all strings and numbers of a value, and the keys of its objects unless `skipped` is given. Members whose key is
 * in `skipped` are left out if their value, or each item of it, is a string or a number.
 */
export function textsIn(
  source: string,
  { start, end }: Pick<JsonNode, 'start' | 'end'>,
  skipped?: ReadonlySet<string>,
): JsonText[] {
  const reader = new TextsReader(source, end, skipped)
  let at = start
  while (at < end) at = reader.read(at)
  return reader.found
}

class TextsReader {
  readonly found: JsonText[] = []
  readonly #source: string
  readonly #end: number
  readonly #skipped: ReadonlySet<string> | undefined
  /** Keys of the values around this one. */
  readonly #keys: string[] = []
  #key = ''

  constructor(source: string, end: number, skipped: ReadonlySet<string> | undefined) {
    this.#source = source
    this.#end = end
    this.#skipped = skipped
  }

  /** Reads the value at `at`. Returns the position after it. */
  read(at: number): number {
    const code = this.#source.charCodeAt(at)
    switch (code) {
      case quote:
        return this.#string(at)
      case openBrace:
      case openBracket:
        this.#keys.push(this.#key)
        return at + 1
      case closeBrace:
      case closeBracket:
        this.#key = this.#keys.pop() ?? ''
        return at + 1
    }
    return code === minus || (code >= 0x30 && code <= 0x39) ? this.#number(at) : at + 1
  }

  get #isSkipped(): boolean {
    return this.#skipped?.has(this.#key) === true
  }

  #string(start: number): number {
    const end = endOfString(this.#source, start) + 1
    const value = stringIn(this.#source, start, end)
    const isKey = this.#isColonAfter(end)
    if (isKey) this.#key = value
    const isWanted = isKey ? this.#skipped === undefined : !this.#isSkipped
    if (isWanted && value !== '') this.found.push({ start, end, value })
    return end
  }

  #isColonAfter(from: number): boolean {
    let at = from
    while (at < this.#end && isSpace(this.#source.charCodeAt(at))) at++
    return at < this.#end && this.#source.charCodeAt(at) === colon
  }

  #number(start: number): number {
    let end = start + 1
    while (numberPart.test(this.#source[end] ?? '')) end++
    if (!this.#isSkipped) this.found.push({ start, end, value: this.#source.slice(start, end) })
    return end
  }
}

const numberPart = /[\d.eE+-]/
