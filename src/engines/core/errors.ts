import * as abi from './abi.ts'
import * as texts from './abi-texts.ts'

/** Names of the ABI's codes, which are its negative constants. */
const names = new Map<number, string>(
  Object.entries({ ...abi, ...texts })
    .filter(([, value]) => value < 0)
    .map(([name, value]) => [value, name]),
)

/** Returns the ABI's name of a negative code, or the name of the reason in a refused response's code. */
export function nameOfCode(code: number): string {
  const name = names.get(code)
  if (name !== undefined) return name
  const reason = abi.ERROR_RESPONSE - code
  if (reason <= 0 || reason >= 100) return `code ${code}`
  const known = [...names].find(([other]) => other < -40000 && -other % 100 === reason)
  return `${known?.[1] ?? reason} in a response`
}

/**
 * Returns the HTTP status for a refused head or body: 400, 414, 431, 501 or 505 for a request, 502 for
 * a response. Returns 500 for any other code, which means a bug or lack of memory.
 */
export function statusOfRefusal(code: number): number {
  return code <= -40000 ? Math.floor(-code / 100) : 500
}

/** Thrown if the core refuses a call whose input did not come from the network. */
export class CoreError extends Error {
  override readonly name = 'CoreError'
  /** A negative code of the ABI. */
  readonly code: number

  constructor(code: number, during: string) {
    super(`${during}: ${nameOfCode(code)}`)
    this.code = code
  }
}

/**
 * Thrown if the instance has trapped, in this call or before, because of a bug in the core. Its memory
 * cannot be trusted any more, so every later call fails with the same error. The host counts the trap,
 * responds with 500 and continues with a new instance.
 */
export class CoreTrap extends Error {
  override readonly name = 'CoreTrap'

  constructor(during: string, cause: unknown) {
    super(`the core trapped in ${during}`, { cause })
  }
}
