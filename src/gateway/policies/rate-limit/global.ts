import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  type HeaderValue,
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponseSchema,
} from '../../../../proto/gen/called/rate_limit_pb.ts'
import {
  type CelError,
  type CelResult,
  type CelValue,
  errorText,
  isAvailable,
  isCelError,
  toText,
} from '../../../engines/cel/index.ts'
import {
  type Callouts,
  type Exchange,
  type HeaderFields,
  type RespondVerdict,
  refuse,
} from '../../../ground/exchange/exchange.ts'
import { isFieldName, isFieldValue } from '../../../ground/model/header-changes.ts'
import { type BodyNeeds, Expression } from '../../variables/index.ts'
import type { GlobalLimit, LimitUnit } from './config.ts'
import { limited, type RateLimitStatus } from './status.ts'

const method = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
/** Default timeout of the call. A timeout of the backend overrides it. */
const timeoutMs = 2_000
/** Numbers of Envoy's enum Code. */
const codes = { ok: 1, overLimit: 2 } as const

interface BoundDescriptor {
  readonly counts: LimitUnit
  readonly entries: readonly {
    readonly key: string
    readonly expression: Expression
    /** Whether it reads what is known only once the request to a model is read, such as `llm` or the body. */
    readonly isLate: boolean
  }[]
}

const resultsExtension = 'rateLimit.tokenDescriptors'

/** The server's answer if the request is allowed. */
export interface Permission {
  readonly status: RateLimitStatus | undefined
  readonly forRequest: readonly HeaderPair[]
  readonly forResponse: readonly HeaderPair[]
}

type HeaderPair = readonly [name: string, value: string]

const unavailable = (error: Error) =>
  refuse(500, 'RateLimit', 'rate limit failed', `the rate limit server failed: ${error.message}`)

/** Limits that a server counts for many proxies (Envoy's rate limit service, version 3). */
export class GlobalLimits implements BodyNeeds {
  readonly request: boolean
  readonly response = false
  readonly #limit: GlobalLimit
  readonly #callouts: Callouts
  readonly #descriptors: readonly BoundDescriptor[]

  constructor(limit: GlobalLimit, callouts: Callouts) {
    this.#limit = limit
    this.#callouts = callouts
    this.#descriptors = limit.descriptors.map(({ counts, entries }) => ({
      counts,
      entries: entries.map((entry) => {
        const expression = new Expression(entry.expression)
        const isLate = expression.request || !isAvailable(entry.expression, 'traffic')
        return { key: entry.name, expression, isLate }
      }),
    }))
    const all = this.#descriptors.flatMap(({ entries }) => entries)
    this.request = all.some(({ expression }) => expression.request)
  }

  counts(what: LimitUnit): boolean {
    return this.#descriptors.some(({ counts }) => counts === what)
  }

  /**
   * Charges `cost` units to the limits of one unit at the server. Resolves to undefined if there is nothing
   * to ask, because no descriptor has all of its values. If the server or an expression fails, the request is
   * refused with 500, since otherwise requests over the limit could pass.
   */
  async ask(
    exchange: Exchange,
    what: LimitUnit,
    cost: number,
  ): Promise<Permission | RespondVerdict | undefined> {
    const descriptors = this.#values(exchange, what)
    if ('kind' in descriptors) return descriptors
    if (descriptors.length === 0) return undefined
    const hitsAddend = BigInt(Math.max(0, Math.trunc(cost)))
    const request = create(RateLimitRequestSchema, {
      domain: this.#limit.domain,
      // Some servers do not support the field. Its default is 1, so it is left out for 1.
      descriptors: descriptors.map((entries) =>
        hitsAddend === 1n ? { entries } : { entries, hitsAddend },
      ),
      hitsAddend: Number(hitsAddend),
    })
    try {
      const response = await this.#callouts.grpc({
        target: this.#limit.target,
        path: method,
        message: toBinary(RateLimitRequestSchema, request),
        exchange,
        subtype: 'RateLimit',
        timeoutMs,
      })
      return toPermission(fromBinary(RateLimitResponseSchema, response), this.#limit.domain)
    } catch (error) {
      if (error instanceof Error) return unavailable(error)
      throw error
    }
  }

  /** Stores the values of token descriptors that are known before the request to a model is read. */
  note(exchange: Exchange): void {
    this.#note(exchange, false)
  }

  /** Stores the other values, so that the limit that is checked is the one that is charged. */
  noteLate(exchange: Exchange): void {
    this.#note(exchange, true)
  }

  #note(exchange: Exchange, late: boolean): void {
    const results = resultsOf(exchange) ?? new Map<Expression, CelResult>()
    for (const { counts, entries } of this.#descriptors) {
      if (counts !== 'tokens') continue
      for (const { expression, isLate } of entries) {
        if (isLate === late) results.set(expression, expression.evaluate(exchange))
      }
    }
    exchange.extensions.set(resultsExtension, results)
  }

  /**
   * Returns the entries of each descriptor that has all of its values, or a refusal if an expression fails.
   * Otherwise a client could evade a limit with a request for which its expression fails, such as a body over
   * the limit.
   */
  #values(exchange: Exchange, what: LimitUnit): DescriptorEntry[][] | RespondVerdict {
    const results = resultsOf(exchange)
    const found: DescriptorEntry[][] = []
    for (const { counts, entries } of this.#descriptors) {
      if (counts !== what) continue
      const values: DescriptorEntry[] = []
      for (const { key, expression } of entries) {
        const result = results?.get(expression) ?? expression.evaluate(exchange)
        if (isCelError(result) && result.kind !== 'missing') return failedEntry(key, result)
        const value = textOf(result)
        if (value !== undefined) values.push({ key, value })
      }
      if (values.length === entries.length) found.push(values)
    }
    return found
  }
}

interface DescriptorEntry {
  readonly key: string
  readonly value: string
}

const failedEntry = (key: string, error: CelError) =>
  refuse(500, 'RateLimit', 'rate limit failed', `the entry ${key} failed: ${errorText(error)}`)

const resultsOf = ({ extensions }: Exchange) =>
  extensions.get(resultsExtension) as Map<Expression, CelResult> | undefined

/** Converts a string, number or bool to text. A descriptor with any other value is not sent. */
function textOf(result: CelResult): string | undefined {
  if (isCelError(result) || result === null) return undefined
  if (typeof result === 'object' && !('value' in result)) return undefined
  const text = toText(result as CelValue)
  return typeof text === 'string' ? text : undefined
}

/** @throws Error if the response neither allows nor limits the request */
function toPermission(response: RateLimitResponse, domain: string): Permission | RespondVerdict {
  const forResponse = pairs(response.responseHeadersToAdd)
  const status = leastOf(response)
  const { overallCode } = response
  if (overallCode === codes.ok) {
    return { status, forRequest: pairs(response.requestHeadersToAdd), forResponse }
  }
  if (overallCode !== codes.overLimit) throw new Error(`it answered with the code ${overallCode}`)
  const waitMs = (status?.reset ?? 1) * 1000
  const recorded = `global limit${status ? ` ${status.limit}` : ''} of domain ${domain}`
  const refused = limited(status ?? { limit: 0, remaining: 0, reset: 1 }, waitMs, {
    recorded,
    shown: undefined,
  })
  const headers = status === undefined ? forResponse : [...(refused.headers ?? []), ...forResponse]
  const body = Buffer.from(response.rawBody).toString()
  // A text of the server says more than the gateway can.
  const own = body !== '' && { body, limit: { message: body, waitMs } }
  return { ...refused, headers, ...own }
}

/** The status of the limit with the fewest remaining units; statuses without a limit are skipped. */
function leastOf({ statuses }: RateLimitResponse): RateLimitStatus | undefined {
  let least: RateLimitStatus | undefined
  for (const { currentLimit, limitRemaining, durationUntilReset } of statuses) {
    if (currentLimit === undefined) continue
    if (least !== undefined && least.remaining <= limitRemaining) continue
    const reset = Number(durationUntilReset?.seconds ?? 0n)
    least = { limit: currentLimit.requestsPerUnit, remaining: limitRemaining, reset }
  }
  return least
}

/** Header fields that the server may set; excludes pseudo-headers and Host. */
function pairs(headers: readonly HeaderValue[]): HeaderPair[] {
  return headers.flatMap(({ key, value, rawValue }): HeaderPair[] => {
    const text = rawValue.length > 0 ? Buffer.from(rawValue).toString('latin1') : value
    const isFit = isFieldName(key) && isFieldValue(text) && key.toLowerCase() !== 'host'
    return isFit ? [[key, text]] : []
  })
}

export function setAll(fields: HeaderFields, headers: readonly HeaderPair[]): void {
  for (const [name, value] of headers) fields.set(name, value)
}
