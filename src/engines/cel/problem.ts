import { nearest } from '../../ground/base/suggest.ts'

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

/** Returns the message with the position in the expression. */
export function positionedText({ message, line, column }: CelProblem): string {
  return `${message} (line ${line}, column ${column} of the expression)`
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

/** Returns the message about an unknown name, with the known name that was most likely meant. */
export function unknownName(noun: string, name: string, known: Iterable<string>): string {
  const meant = nearest(name, [...known])
  const shown = noun === 'variable' ? name : `${name}()`
  return `unknown ${noun} ${shown}${meant === undefined ? '' : `; did you mean ${meant}?`}`
}
