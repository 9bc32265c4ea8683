import { CelError } from './error.ts'
import type { CelResult, CelValue } from './value.ts'

/** Where the variables of an evaluation come from. */
export interface Activation {
  /**
   * The value of a variable; undefined where it is not set; an error where it cannot be had, such
   * as a body over its limit. May be asked more than once.
   */
  lookup(name: string): CelResult | undefined
  /** Names of the variables that are set, for `variables()`. */
  names?(): readonly string[]
}

/** One evaluation. */
export interface Frame {
  readonly activation: Activation
  /** Values of the variables that macros bind, by slot. */
  readonly locals: CelValue[]
  /** Steps left. */
  budget: number
}

/** One part of a program, ready to run. Never throws for what an expression or its data can do. */
export type Step = (frame: Frame) => CelResult

const tooCostly = new CelError('cost', 'the evaluation takes too many steps')

/** Takes steps from the budget: the error when it is used up. One step is about one operation. */
export function spend(frame: Frame, steps: number): CelError | undefined {
  frame.budget -= steps
  return frame.budget < 0 ? tooCostly : undefined
}

/** Steps that making or reading a text or list of this length counts for. */
export function stepsOfLength(length: number): number {
  return length >> 4
}
