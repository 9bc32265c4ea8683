import { isCelError, noOverload } from './error.ts'
import type { Step } from './frame.ts'
import type { Expression } from './syntax.ts'
import { typeName } from './value.ts'

/** Compiles a part of an expression in the same scope. */
export type CompilePart = (part: Expression) => Step

/** Compiles `text.startsWith("…")` and `text.endsWith("…")` without a lookup in the table of functions. */
export function textMethodStep(
  { name, of, args }: Expression & { op: 'method' },
  step: CompilePart,
): Step | undefined {
  const [arg, ...rest] = args
  if (arg?.op !== 'literal' || typeof arg.value !== 'string' || rest.length > 0) return undefined
  const { value: part } = arg
  if (name === 'startsWith') return startsWithStep(step(of), part)
  return name === 'endsWith' ? endsWithStep(step(of), part) : undefined
}

/** Up to this length, comparing characters one by one is faster than `String.startsWith`. */
const shortLength = 16

function startsWithStep(text: Step, part: string): Step {
  const isShort = part.length <= shortLength
  return (frame) => {
    const value = text(frame)
    if (typeof value === 'string') return isShort ? begins(value, part) : value.startsWith(part)
    return isCelError(value) ? value : noOverload('startsWith', typeName(value), 'string')
  }
}

function begins(text: string, part: string): boolean {
  if (text.length < part.length) return false
  for (let at = 0; at < part.length; at++) {
    if (text.charCodeAt(at) !== part.charCodeAt(at)) return false
  }
  return true
}

function endsWithStep(text: Step, part: string): Step {
  return (frame) => {
    const value = text(frame)
    if (typeof value === 'string') return value.endsWith(part)
    return isCelError(value) ? value : noOverload('endsWith', typeName(value), 'string')
  }
}
