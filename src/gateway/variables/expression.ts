import {
  CelError,
  type CelProgram,
  type CelResult,
  type CelValue,
  compileOrFail,
  gatewayVariables,
  isCelError,
  toText,
  writeJson,
} from '../../engines/cel/index.ts'
import type { Exchange } from '../../ground/exchange/exchange.ts'
import { ExchangeActivation } from './activation.ts'
import type { BodyNeeds } from './bodies.ts'
import { lineReading } from './headers.ts'

/** Shared by all expressions: evaluations are synchronous, so only one runs at a time. */
const activation = new ExchangeActivation()

/** Maximum number of lines of a header that are also judged one by one. */
const maxLines = 32

const tooManyLines = new CelError('limit', `a header has more than ${maxLines} lines`)

/** An expression of a policy, compiled once; immutable. */
export class Expression implements BodyNeeds {
  readonly #program: CelProgram
  /** True if it reads the request body, which then must be in memory before `evaluate`. */
  readonly request: boolean
  /** True if it reads the response body, which then must be in memory before `evaluate`. */
  readonly response: boolean

  /** If the source does not compile, each evaluation gives an error; the control plane reports it as well. */
  constructor(source: string) {
    this.#program = compileOrFail(source, { variables: gatewayVariables })
    this.request = this.#mentionsBody('request')
    this.response = this.#mentionsBody('response')
  }

  get source(): string {
    return this.#program.source
  }

  /** Returns true if it may read the value at a dotted path such as `jwt.sub`. */
  mentions(path: string): boolean {
    return this.#program.mentions(path)
  }

  /** Returns the value or an error; never throws. Without an exchange, only `env` is set. */
  evaluate(exchange: Exchange | undefined): CelResult {
    activation.exchange = exchange
    return this.#program.evaluate(activation)
  }

  /**
   * Evaluates a rule for every way in which a backend may read a header of several lines: joined to one value
   * (RFC 9110 5.3), or one of its lines alone, such as the first. Returns the first result for which `decides`
   * is true, or else the result for the joined value.
   */
  judge(exchange: Exchange, decides: (result: CelResult) => boolean): CelResult {
    lineReading.lines = 1
    const joined = this.evaluate(exchange)
    return lineReading.lines === 1 || decides(joined)
      ? joined
      : this.#judgeLines(joined, lineReading.lines, decides)
  }

  #judgeLines(
    joined: CelResult,
    lines: number,
    decides: (result: CelResult) => boolean,
  ): CelResult {
    if (lines > maxLines) return tooManyLines
    try {
      for (let line = 0; line < lines; line++) {
        lineReading.line = line
        const result = this.#program.evaluate(activation, lines)
        if (decides(result)) return result
      }
    } finally {
      lineReading.line = undefined
    }
    return joined
  }

  /** Returns true if the expression names the body; naming only the message does not buffer its body. */
  #mentionsBody(message: 'request' | 'response'): boolean {
    return (
      this.#program.mentions(`${message}.body`) || this.#program.mentions(`${message}.bodyPrefix`)
    )
  }
}

/** Converts strings and bytes to a header field value, as Latin-1; undefined for any other result. */
export function toFieldValue(result: CelResult): string | undefined {
  if (typeof result === 'string') return toLatin1(result)
  return result instanceof Uint8Array ? Buffer.from(result).toString('latin1') : undefined
}

/** Encodes text as UTF-8 with one character per byte, as the engine and policies hold fields. */
function toLatin1(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: everything but ASCII is wanted
  return /^[\x00-\x7f]*$/.test(text) ? text : Buffer.from(text).toString('latin1')
}

/** Converts a result to body bytes: a string as UTF-8, bytes as they are, other values as JSON. */
export function toBytes(result: CelResult): Uint8Array | undefined {
  if (isCelError(result)) return undefined
  if (typeof result === 'string') return Buffer.from(result)
  if (result instanceof Uint8Array) return result
  const json = writeJson(result as CelValue)
  return isCelError(json) ? undefined : Buffer.from(json)
}

/** Converts a string, number or bool to text. Other values have none. */
export function textOfResult(result: CelResult): string | undefined {
  if (isCelError(result) || result === null) return undefined
  if (typeof result === 'object' && !('value' in result)) return undefined
  const text = toText(result as CelValue)
  return typeof text === 'string' ? text : undefined
}
