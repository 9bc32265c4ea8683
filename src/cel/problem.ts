/** Why a text is no expression. */
export interface CelProblem {
  readonly message: string
  /** Where it was noticed, in UTF-16 units from the start. */
  readonly offset: number
  /** Both from 1. */
  readonly line: number
  readonly column: number
}

export function problemAt(source: string, offset: number, message: string): CelProblem {
  const before = source.slice(0, offset)
  const line = before.split('\n').length
  return { message, offset, line, column: offset - before.lastIndexOf('\n') }
}
