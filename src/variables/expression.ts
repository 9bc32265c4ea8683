import {
  type CelProgram,
  type CelResult,
  type CelValue,
  compileOrFail,
  gatewayVariables,
  isCelError,
  writeJson,
} from '../cel/index.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { ExchangeActivation } from './activation.ts'
import type { BodyNeeds } from './bodies.ts'

/** One for all: an evaluation takes no time in which another could begin. */
const activation = new ExchangeActivation()

/** An expression of a policy, compiled once; immutable. */
export class Expression implements BodyNeeds {
  readonly #program: CelProgram
  /** Does it read the body? Then it must be in memory before `evaluate`. */
  readonly request: boolean
  readonly response: boolean

  /** One that does not compile gives an error each time; the control plane has told its author. */
  constructor(source: string) {
    this.#program = compileOrFail(source, { variables: gatewayVariables })
    this.request = this.#mentionsBody('request')
    this.response = this.#mentionsBody('response')
  }

  get source(): string {
    return this.#program.source
  }

  /** May it read what a dotted path such as `jwt.sub` names? */
  mentions(path: string): boolean {
    return this.#program.mentions(path)
  }

  /** The value, or why there is none. Never throws. Without an exchange there is `env` and no more. */
  evaluate(exchange: Exchange | undefined): CelResult {
    activation.exchange = exchange
    return this.#program.evaluate(activation)
  }

  /** A part of the message, but not the message as a whole: `request` alone buffers nothing. */
  #mentionsBody(message: 'request' | 'response'): boolean {
    return (
      this.#program.mentions(`${message}.body`) || this.#program.mentions(`${message}.bodyPrefix`)
    )
  }
}

/**
 * The value of a header field: texts and bytes (as Latin-1) as they are. An error, and every other
 * type, has no such form: undefined.
 */
export function toFieldValue(result: CelResult): string | undefined {
  if (typeof result === 'string') return toLatin1(result)
  return result instanceof Uint8Array ? Buffer.from(result).toString('latin1') : undefined
}

/** Fields are bytes, which engine and policies write one per character; text goes out as UTF-8. */
function toLatin1(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: everything but ASCII is wanted
  return /^[\x00-\x7f]*$/.test(text) ? text : Buffer.from(text).toString('latin1')
}

/** The bytes of a body: texts as UTF-8, bytes as they are, every other value as JSON. */
export function toBytes(result: CelResult): Uint8Array | undefined {
  if (isCelError(result)) return undefined
  if (typeof result === 'string') return Buffer.from(result)
  if (result instanceof Uint8Array) return result
  const json = writeJson(result as CelValue)
  return isCelError(json) ? undefined : Buffer.from(json)
}
