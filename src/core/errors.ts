import * as abi from './abi.ts'

/** Names of the abi's codes; constants that are no codes are positive. */
const names = new Map<number, string>(
  Object.entries(abi)
    .filter(([, value]) => value < 0)
    .map(([name, value]) => [value, name]),
)

/** The name that the abi gives a negative code; a refused response's code has its reason's name. */
export function nameOfCode(code: number): string {
  const name = names.get(code)
  if (name !== undefined) return name
  const reason = abi.ERROR_RESPONSE - code
  if (reason <= 0 || reason >= 100) return `code ${code}`
  const known = [...names].find(([other]) => other < -40000 && -other % 100 === reason)
  return `${known?.[1] ?? reason} in a response`
}

/**
 * The HTTP status that a refusal of a head or body asks for: 400, 414, 431, 501 or 505 for what a
 * client sent, 502 for a response. 500 for any other code: those are bugs or want of memory.
 */
export function statusOfRefusal(code: number): number {
  return code <= -40000 ? Math.floor(-code / 100) : 500
}

/** A call that the core refused although its input did not come from the network. */
export class CoreError extends Error {
  override readonly name = 'CoreError'
  /** A negative code of the abi. */
  readonly code: number

  constructor(code: number, during: string) {
    super(`${during}: ${nameOfCode(code)}`)
    this.code = code
  }
}

/**
 * The instance has trapped, now or before: a bug in the core. Its memory cannot be trusted any
 * more, so every later call fails with the same error; the host counts it, answers 500 and goes
 * on with a new instance.
 */
export class CoreTrap extends Error {
  override readonly name = 'CoreTrap'

  constructor(during: string, cause: unknown) {
    super(`the core trapped in ${during}`, { cause })
  }
}
