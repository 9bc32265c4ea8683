/** The reason why a text does not compile, and where. */
export interface CelProblem {
  readonly message: string
  /** Offset of the problem, in UTF-16 units. */
  readonly offset: number
  /** Line, from 1. */
  readonly line: number
  /** Column, from 1. */
  readonly column: number
}

export function problemAt(source: string, offset: number, message: string): CelProblem {
  const before = source.slice(0, offset)
  const line = before.split('\n').length
  return { message, offset, line, column: offset - before.lastIndexOf('\n') }
}

/** A syntax error; thrown and caught only within the parser. */
export class BadSyntax {
  readonly at: number
  readonly message: string

  constructor(at: number, message: string) {
    this.at = at
    this.message = message
  }
}
