import { CelError, noOverload } from '../error.ts'
import type { EvaluationFrame } from '../frame.ts'
import { type CelResult, type CelValue, typeName } from '../value.ts'

/** Whether a function is called as `f(a, b)`, as `a.f(b)`, or as either. */
export type CallStyle = 'function' | 'method' | 'either'

/** Omitted arguments are undefined. The receiver of a method is the first argument. */
export type ApplyFunction = (
  frame: EvaluationFrame,
  a: CelValue,
  b: CelValue,
  c: CelValue,
  d: CelValue,
) => CelResult

export interface CelFunction {
  readonly style: CallStyle
  /** Minimum number of arguments, including the receiver. */
  readonly min: number
  /** Maximum number of arguments, including the receiver; at most 4 for `apply`. */
  readonly max: number
  readonly apply?: ApplyFunction
  /** Replaces `apply` for functions with any number of arguments. */
  readonly applyAll?: (frame: EvaluationFrame, args: readonly CelValue[]) => CelResult
}

/** Functions by name; a name with a dot belongs to a namespace (`base64.encode`). */
export type FunctionTable = Readonly<Record<string, CelFunction>>

/** Defines a function with a fixed number of arguments. */
export function fixed(style: CallStyle, count: number, apply: ApplyFunction): CelFunction {
  return { style, min: count, max: count, apply }
}

/** Defines a function whose last arguments may be omitted. */
export function optionalFrom(
  style: CallStyle,
  min: number,
  max: number,
  apply: ApplyFunction,
): CelFunction {
  return { style, min, max, apply }
}

/** Defines a function of one string. */
export function ofText(
  name: string,
  style: CallStyle,
  apply: (text: string, frame: EvaluationFrame) => CelResult,
): CelFunction {
  return fixed(style, 1, (frame, text) =>
    typeof text === 'string' ? apply(text, frame) : noOverload(name, typeName(text)),
  )
}

/** Defines a function of two strings. */
export function ofTexts(
  name: string,
  style: CallStyle,
  apply: (text: string, other: string, frame: EvaluationFrame) => CelResult,
): CelFunction {
  return fixed(style, 2, (frame, text, other) =>
    typeof text === 'string' && typeof other === 'string'
      ? apply(text, other, frame)
      : noOverload(name, typeName(text), typeName(other)),
  )
}

/** The error for arguments of types that a function does not accept. */
export function wrongTypes(name: string, ...values: readonly (CelValue | undefined)[]): CelError {
  return noOverload(name, ...values.filter((v) => v !== undefined).map((v) => typeName(v)))
}

/** The error for an invalid argument of the right type. */
export function badValue(message: string): CelError {
  return new CelError('value', message)
}
