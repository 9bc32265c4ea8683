/** The operators `&&`, `||`, `!` and `?:`. */
import { CelError, isCelError, noOverload } from './error.ts'
import type { Step } from './frame.ts'
import { type CelResult, typeName } from './value.ts'

/**
 * Evaluates operands in order until one decides the result. If none does, the result is an error if any
 * operand is one: the first error that is not a missing key, because callers let missing keys pass.
 */
export function logicStep(operator: '&&' | '||', operands: readonly Step[]): Step {
  const decisive = operator === '||'
  const [first, second, ...rest] = operands
  if (first === undefined || second === undefined) return first ?? (() => !decisive)
  if (rest.length > 0) return longLogicStep(operator, operands)
  return (frame) => {
    const left = first(frame)
    if (left === decisive) return left
    const right = second(frame)
    if (right === decisive) return right
    return typeof left === 'boolean' && typeof right === 'boolean'
      ? right
      : moreSevere(toError(operator, left), toError(operator, right))
  }
}

function longLogicStep(operator: '&&' | '||', operands: readonly Step[]): Step {
  const decisive = operator === '||'
  return (frame) => {
    let error: CelError | undefined
    for (const operand of operands) {
      const value = operand(frame)
      if (value === decisive) return value
      if (typeof value !== 'boolean')
        error = moreSevere(error, toError(operator, value)) as CelError
    }
    return error ?? !decisive
  }
}

function toError(operator: string, value: CelResult): CelError | undefined {
  if (typeof value === 'boolean') return undefined
  return isCelError(value) ? value : noOverload(operator, typeName(value))
}

/** Selects the error that is returned: the first one that is not a missing key, if any. */
export function moreSevere(a: CelError | undefined, b: CelError | undefined): CelResult {
  if (a === undefined || b === undefined) return a ?? b ?? noDecision
  return a.kind === 'missing' ? b : a
}

const noDecision = new CelError('internal', 'no operand decided')

export function notStep(operand: Step): Step {
  return (frame) => {
    const value = operand(frame)
    if (typeof value === 'boolean') return !value
    return isCelError(value) ? value : noOverload('!', typeName(value))
  }
}

export function ifStep(condition: Step, then: Step, otherwise: Step): Step {
  return (frame) => {
    const value = condition(frame)
    if (value === true) return then(frame)
    if (value === false) return otherwise(frame)
    return isCelError(value) ? value : noOverload('?:', typeName(value))
  }
}
