import { isCelError, noOverload } from './error.ts'
import type { Step } from './frame.ts'
import type { Expression } from './syntax.ts'
import { typeName } from './value.ts'

type Compile = (part: Expression) => Step

/** `text.startsWith("…")` and `text.endsWith("…")` with a constant: no call through the table. */
export function textMethodStep(
  { name, of, args }: Expression & { op: 'method' },
  step: Compile,
): Step | undefined {
  const [arg, ...rest] = args
  if (arg?.op !== 'literal' || typeof arg.value !== 'string' || rest.length > 0) return undefined
  const { value: part } = arg
  if (name === 'startsWith') return startsWithStep(step(of), part)
  return name === 'endsWith' ? endsWithStep(step(of), part) : undefined
}

function startsWithStep(text: Step, part: string): Step {
  return (frame) => {
    const value = text(frame)
    if (typeof value === 'string') return value.startsWith(part)
    return isCelError(value) ? value : noOverload('startsWith', typeName(value), 'string')
  }
}

function endsWithStep(text: Step, part: string): Step {
  return (frame) => {
    const value = text(frame)
    if (typeof value === 'string') return value.endsWith(part)
    return isCelError(value) ? value : noOverload('endsWith', typeName(value), 'string')
  }
}
