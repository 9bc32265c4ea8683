/** Reads the tokens of a text, one at a time (CEL language definition, Lexis). */
import { BadSyntax } from './problem.ts'
import { readQuoted } from './quoted.ts'
import { CelUint, type CelValue } from './value.ts'

export type Token =
  | { readonly kind: 'end'; readonly at: number; readonly text: '' }
  /** An operator, a bracket, or a keyword that is an operator or a literal. */
  | { readonly kind: 'mark'; readonly at: number; readonly text: string }
  | {
      readonly kind: 'name'
      readonly at: number
      readonly text: string
      readonly isQuoted: boolean
    }
  /** An integer without its sign: the least int has no positive counterpart. */
  | { readonly kind: 'int'; readonly at: number; readonly text: string; readonly size: bigint }
  | {
      readonly kind: 'literal'
      readonly at: number
      readonly text: string
      readonly value: CelValue
    }

const blank = /[\t\n\f\r ]*(?:\/\/[^\n]*(?:\n[\t\n\f\r ]*|$))*/y
const word = /[A-Za-z_][A-Za-z_0-9]*/y
/** Matches the start of a string or bytes literal, raw or not. */
const quote = /(?:[bB]?[rR]?)("""|'''|"|')/y
const hex = /0[xX]([0-9a-fA-F]+)([uU]?)/y
const double = /(?:[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)/y
const decimal = /([0-9]+)([uU]?)/y
const mark = /==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()[\]{}]/y
const backquoted = /`([A-Za-z0-9_.\-/ ]+)`/y

/** Words that are tokens of kind `mark`, not names. */
const keywords: ReadonlySet<string> = new Set(['in', 'true', 'false', 'null'])
const maxUint = 2n ** 64n - 1n

export class Lexer {
  readonly #source: string
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  /** @throws BadSyntax */
  next(): Token {
    this.#match(blank)
    const at = this.#at
    if (at >= this.#source.length) return { kind: 'end', at, text: '' }
    return (
      this.#quoted(at) ?? this.#word(at) ?? this.#number(at) ?? this.#mark(at) ?? this.#unknown(at)
    )
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#source)
    if (found !== null) this.#at = pattern.lastIndex
    return found
  }

  #quoted(at: number): Token | undefined {
    const open = this.#match(quote)
    if (open === null) return undefined
    const [prefix, marks = '"'] = open
    const { value, end } = readQuoted(this.#source, at, prefix, marks)
    this.#at = end
    return { kind: 'literal', at, text: this.#source.slice(at, end), value }
  }

  #word(at: number): Token | undefined {
    const text = this.#match(word)?.[0]
    if (text !== undefined) {
      return keywords.has(text)
        ? { kind: 'mark', at, text }
        : { kind: 'name', at, text, isQuoted: false }
    }
    const name = this.#match(backquoted)?.[1]
    return name === undefined ? undefined : { kind: 'name', at, text: name, isQuoted: true }
  }

  #number(at: number): Token | undefined {
    const token = this.#hexadecimal(at) ?? this.#double(at) ?? this.#decimal(at)
    if (token === undefined) return undefined
    // Rejects texts such as `1abc`, which are neither a number nor a name.
    if (this.#match(word) !== null) {
      throw new BadSyntax(at, `${this.#source.slice(at, this.#at)} is not a number`)
    }
    return token
  }

  #hexadecimal(at: number): Token | undefined {
    const found = this.#match(hex)
    if (found === null) return undefined
    const [text, digits = '0', suffix] = found
    return integer(at, text, BigInt(`0x${digits}`), suffix !== '')
  }

  #double(at: number): Token | undefined {
    const text = this.#match(double)?.[0]
    return text === undefined ? undefined : { kind: 'literal', at, text, value: Number(text) }
  }

  #decimal(at: number): Token | undefined {
    const found = this.#match(decimal)
    if (found === null) return undefined
    const [text, digits = '0', suffix] = found
    return integer(at, text, BigInt(digits), suffix !== '')
  }

  #mark(at: number): Token | undefined {
    const text = this.#match(mark)?.[0]
    return text === undefined ? undefined : { kind: 'mark', at, text }
  }

  #unknown(at: number): never {
    const char = String.fromCodePoint(this.#source.codePointAt(at) ?? 0)
    const hint = char === '=' ? '; write == to compare' : ''
    throw new BadSyntax(at, `unexpected character ${JSON.stringify(char)}${hint}`)
  }
}

function integer(at: number, text: string, size: bigint, isUnsigned: boolean): Token {
  if (!isUnsigned) return { kind: 'int', at, text, size }
  if (size > maxUint) throw new BadSyntax(at, 'the integer is outside 64 bits')
  return { kind: 'literal', at, text, value: new CelUint(size) }
}
