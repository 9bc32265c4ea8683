/** What a function of the language is made of. */
import { CelError, noOverload } from '../error.ts'
import type { Frame } from '../frame.ts'
import { type CelResult, type CelValue, typeName } from '../value.ts'

/** `f(a, b)`, `a.f(b)`, or both. */
export type CallStyle = 'function' | 'method' | 'either'

/** Arguments that a call leaves out are undefined; the receiver of a method is the first. */
export type Apply = (frame: Frame, a: CelValue, b: CelValue, c: CelValue, d: CelValue) => CelResult

export interface CelFunction {
  readonly style: CallStyle
  /** Least and most arguments, the receiver included; at most 4 for `apply`. */
  readonly min: number
  readonly max: number
  readonly apply?: Apply
  /** Instead of `apply`, for any number of arguments. */
  readonly applyAll?: (frame: Frame, args: readonly CelValue[]) => CelResult
}

/** Name -> function; a dot in a name is that of a namespace (`base64.encode`). */
export type FunctionTable = Readonly<Record<string, CelFunction>>

/** A function with a fixed number of arguments. */
export function fixed(style: CallStyle, count: number, apply: Apply): CelFunction {
  return { style, min: count, max: count, apply }
}

/** A function whose last arguments may be left out. */
export function optionalFrom(
  style: CallStyle,
  min: number,
  max: number,
  apply: Apply,
): CelFunction {
  return { style, min, max, apply }
}

/** A function of one text. */
export function ofText(
  name: string,
  style: CallStyle,
  apply: (text: string, frame: Frame) => CelResult,
): CelFunction {
  return fixed(style, 1, (frame, text) =>
    typeof text === 'string' ? apply(text, frame) : noOverload(name, typeName(text)),
  )
}

/** A function of two texts. */
export function ofTexts(
  name: string,
  style: CallStyle,
  apply: (text: string, other: string, frame: Frame) => CelResult,
): CelFunction {
  return fixed(style, 2, (frame, text, other) =>
    typeof text === 'string' && typeof other === 'string'
      ? apply(text, other, frame)
      : noOverload(name, typeName(text), typeName(other)),
  )
}

/** The error for arguments of types that a function does not take. */
export function wrongTypes(name: string, ...values: readonly (CelValue | undefined)[]): CelError {
  return noOverload(name, ...values.filter((v) => v !== undefined).map((v) => typeName(v)))
}

/** The error for an argument of the right type that means nothing. */
export function badValue(message: string): CelError {
  return new CelError('value', message)
}
