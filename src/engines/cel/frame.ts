import { CelError } from './error.ts'
import type { CelResult, CelValue } from './value.ts'

/** Supplies the variables of an evaluation. */
export interface Activation {
  /**
   * Returns the value of a variable, undefined if it is not set, or an error if it cannot be read, such as a
   * body over its limit. May be called more than once.
   */
  lookup(name: string): CelResult | undefined
  /** Returns the names of the variables that are set, for `variables()`. */
  names?(): readonly string[]
}

/** The state of one evaluation. */
export interface EvaluationFrame {
  readonly activation: Activation
  /** Values of the variables that macros bind, by slot. */
  readonly locals: CelValue[]
  /** Number of steps left. */
  budget: number
}

/** Evaluates one part of a compiled program. Never throws because of an expression or its data. */
export type Step = (frame: EvaluationFrame) => CelResult

const tooCostly = new CelError('cost', 'the evaluation takes too many steps')

/** Takes steps from the budget and returns an error if it is used up. A step is about one operation. */
export function spend(frame: EvaluationFrame, steps: number): CelError | undefined {
  frame.budget -= steps
  return frame.budget < 0 ? tooCostly : undefined
}

/** Number of steps for creating or reading a string or list of this length. */
export function stepsOfLength(length: number): number {
  return length >> 4
}
