/** Limits that a server keeps for many proxies (Envoy's rate limit service, version 3). */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  type HeaderValue,
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponseSchema,
} from '../../../proto/gen/called/rate_limit_pb.ts'
import { type CelResult, type CelValue, isCelError, toText } from '../../cel/index.ts'
import { GatewayError } from '../../errors/index.ts'
import type { Callouts, Exchange, HeaderFields, RespondVerdict } from '../../exchange/exchange.ts'
import { isFieldName, isFieldValue } from '../../model/header-changes.ts'
import { type BodyNeeds, Expression } from '../../variables/index.ts'
import type { GlobalDescriptor, GlobalLimit } from './config.ts'
import { type LimitFigures, limited } from './figures.ts'

const method = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
/** Unless the backend has a time limit of its own. */
const timeoutMs = 2_000
const overLimit = 2

interface BoundDescriptor {
  readonly counts: GlobalDescriptor['counts']
  readonly entries: readonly {
    readonly key: string
    readonly expression: Expression
    /** Known only once a provider was chosen or has answered. */
    readonly isLate: boolean
  }[]
}

const lateVariables = ['llm', 'llmRequest', 'response', 'backend', 'destination', 'request.body']
const notedFact = 'rateLimit.tokenDescriptors'

/** What the server has said of a request that may pass. */
export interface Permission {
  readonly figures: LimitFigures | undefined
  readonly forRequest: readonly HeaderPair[]
  readonly forResponse: readonly HeaderPair[]
}

type HeaderPair = readonly [name: string, value: string]

const unavailable: RespondVerdict = {
  kind: 'respond',
  status: 500,
  body: 'rate limit failed',
  reason: 'RateLimit',
  refusal: true,
}

export class GlobalLimits implements BodyNeeds {
  readonly request: boolean
  readonly response: boolean
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
        const isLate = lateVariables.some((name) => expression.mentions(name))
        return { key: entry.name, expression, isLate }
      }),
    }))
    const all = this.#descriptors.flatMap(({ entries }) => entries)
    this.request = all.some(({ expression }) => expression.request)
    this.response = false
  }

  counts(what: GlobalDescriptor['counts']): boolean {
    return this.#descriptors.some(({ counts }) => counts === what)
  }

  /**
   * Asks the server for `cost` units of the descriptors of one kind. Undefined where no descriptor
   * has all of its values: then there is nothing to ask. A server that fails refuses (the client
   * gets 500): a limit that is not kept would let through what it should stop.
   */
  async ask(
    exchange: Exchange,
    what: GlobalDescriptor['counts'],
    cost: number,
  ): Promise<Permission | RespondVerdict | undefined> {
    const descriptors = this.#values(exchange, what)
    if (descriptors.length === 0) return undefined
    const hitsAddend = BigInt(Math.max(0, Math.trunc(cost)))
    const request = create(RateLimitRequestSchema, {
      domain: this.#limit.domain,
      // One is the default of servers, some of which do not know the field.
      descriptors: descriptors.map((entries) =>
        hitsAddend === 1n ? { entries } : { entries, hitsAddend },
      ),
      hitsAddend: Number(hitsAddend),
    })
    try {
      const answer = await this.#callouts.grpc({
        target: this.#limit.target,
        path: method,
        message: toBinary(RateLimitRequestSchema, request),
        exchange,
        subtype: 'RateLimit',
        timeoutMs,
      })
      return judge(fromBinary(RateLimitResponseSchema, answer))
    } catch (error) {
      if (error instanceof GatewayError || error instanceof Error) return unavailable
      throw error
    }
  }

  /** Keeps the values of expressions that do not depend on what a provider answers. */
  note(exchange: Exchange): void {
    const noted = new Map<Expression, CelResult>()
    for (const { counts, entries } of this.#descriptors) {
      if (counts !== 'tokens') continue
      for (const { expression, isLate } of entries) {
        if (!isLate) noted.set(expression, expression.evaluate(exchange))
      }
    }
    exchange.facts.set(notedFact, noted)
  }

  #values(exchange: Exchange, what: GlobalDescriptor['counts']) {
    const noted = exchange.facts.get(notedFact) as ReadonlyMap<Expression, CelResult> | undefined
    return this.#descriptors.flatMap(({ counts, entries }) => {
      if (counts !== what) return []
      const values = entries.flatMap(({ key, expression }) => {
        const value = textOf(noted?.get(expression) ?? expression.evaluate(exchange))
        return value === undefined ? [] : [{ key, value }]
      })
      return values.length === entries.length ? [values] : []
    })
  }
}

/** Texts, numbers and booleans have a text; whatever else drops its descriptor. */
function textOf(result: CelResult): string | undefined {
  if (isCelError(result) || result === null) return undefined
  if (typeof result === 'object' && !('value' in result)) return undefined
  const text = toText(result as CelValue)
  return typeof text === 'string' ? text : undefined
}

function judge(answer: RateLimitResponse): Permission | RespondVerdict {
  const forResponse = pairs(answer.responseHeadersToAdd)
  const figures = leastOf(answer)
  if (answer.overallCode !== overLimit) {
    return { figures, forRequest: pairs(answer.requestHeadersToAdd), forResponse }
  }
  const waitMs = (figures?.reset ?? 1) * 1000
  const refused = limited(figures ?? { limit: 0, remaining: 0, reset: 1 }, waitMs)
  const headers = figures === undefined ? forResponse : [...(refused.headers ?? []), ...forResponse]
  const body = Buffer.from(answer.rawBody).toString()
  return { ...refused, headers, ...(body !== '' && { body }) }
}

/** Of the limit with the least left; a status without a limit tells nothing. */
function leastOf({ statuses }: RateLimitResponse): LimitFigures | undefined {
  let least: LimitFigures | undefined
  for (const { currentLimit, limitRemaining, durationUntilReset } of statuses) {
    if (currentLimit === undefined) continue
    if (least !== undefined && least.remaining <= limitRemaining) continue
    const reset = Number(durationUntilReset?.seconds ?? 0n)
    least = { limit: currentLimit.requestsPerUnit, remaining: limitRemaining, reset }
  }
  return least
}

/** Fields that may be set; pseudo-headers and Host are not the server's business. */
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
