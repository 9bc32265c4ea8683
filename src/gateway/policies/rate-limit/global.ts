import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  type HeaderValue,
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponseSchema,
} from '../../../../proto/gen/called/rate_limit_pb.ts'
import { type CelError, errorText, isCelError } from '../../../engines/cel/index.ts'
import type {
  Callouts,
  Exchange,
  HeaderFields,
  RespondVerdict,
} from '../../../ground/exchange/exchange.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import { isFieldName, isFieldValue } from '../../../ground/model/header-changes.ts'
import type { BodyNeeds } from '../../variables/index.ts'
import { LimitExpression, numberOf } from '../limit-expression.ts'
import type { GlobalLimit, LimitUnit } from './config.ts'
import { LimitOverride, type OverriddenLimit } from './limit-override.ts'

import { failedLimit, limited, type RateLimitStatus } from './status.ts'

const method = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
/** Default timeout of the call. A timeout of the backend overrides it. */
const timeoutMs = 2_000
/** Numbers of Envoy's enum Code. */
const codes = { ok: 1, overLimit: 2 } as const

interface BoundDescriptor {
  readonly counts: LimitUnit
  readonly entries: readonly { readonly key: string; readonly expression: LimitExpression }[]
  readonly cost: LimitExpression | undefined
  readonly limit: LimitOverride | undefined
}

/** The server's answer if the request is allowed. */
export interface Permission {
  readonly status: RateLimitStatus | undefined
  readonly forRequest: readonly HeaderPair[]
  readonly forResponse: readonly HeaderPair[]
}

type HeaderPair = readonly [name: string, value: string]

const unavailable = (error: Error) => failedLimit(`the rate limit server failed: ${error.message}`)

/** Limits that a server counts for many proxies (Envoy's rate limit service, version 3). */
export class GlobalLimits implements BodyNeeds {
  readonly request: boolean
  readonly response = false
  /** Whether a descriptor of tokens reads what may differ between providers. */
  readonly hasLateTokens: boolean
  readonly #limit: GlobalLimit
  readonly #callouts: Callouts
  readonly #descriptors: readonly BoundDescriptor[]

  constructor(limit: GlobalLimit, callouts: Callouts) {
    this.#limit = limit
    this.#callouts = callouts
    this.#descriptors = limit.descriptors.map(({ counts, entries, cost, limitOverride }) => ({
      counts,
      cost: cost === undefined ? undefined : new LimitExpression(cost),
      limit: limitOverride === undefined ? undefined : new LimitOverride(limitOverride),
      entries: entries.map(({ name, expression }) => ({
        key: name,
        expression: new LimitExpression(expression),
      })),
    }))
    this.request = this.#descriptors.some((one) => {
      return expressionsOf(one).some(({ readsBody }) => readsBody)
    })
    this.hasLateTokens = this.#descriptors.some((one) => {
      return one.counts === 'tokens' && expressionsOf(one).some(({ isLate }) => isLate)
    })
  }

  counts(what: LimitUnit): boolean {
    return this.#descriptors.some(({ counts }) => counts === what)
  }

  /**
   * Charges `cost` units to the limits of one unit at the server. If `cost` is omitted, the expression of each descriptor
   * gives its cost.
   * Resolves to undefined if there is nothing to ask, because no descriptor has all of its values. If an expression
   * fails, or the server unless `failureMode` is FailOpen, the request is refused with 500, since otherwise requests
   * over the limit could pass.
   */
  async ask(
    exchange: Exchange,
    what: LimitUnit,
    cost?: number,
  ): Promise<Permission | RespondVerdict | undefined> {
    const descriptors = this.#values(exchange, what, cost)
    if ('kind' in descriptors) return descriptors
    if (descriptors.length === 0) return undefined
    // Servers that do not know `hitsAddend` of descriptors read that of the request.
    const most = Math.max(...descriptors.map(({ hits }) => hits))
    const request = create(RateLimitRequestSchema, {
      domain: this.#limit.domain,
      // Some servers do not support the field. Its default is 1, so it is left out for 1.
      descriptors: descriptors.map(({ hits, ...descriptor }) =>
        hits === 1 && most === 1 ? descriptor : { ...descriptor, hitsAddend: BigInt(hits) },
      ),
      hitsAddend: most,
    })
    try {
      const response = await this.#callouts.grpc({
        target: this.#limit.target,
        path: method,
        message: toBinary(RateLimitRequestSchema, request),
        exchange,
        subtype: 'RateLimit',
        timeoutMs,
        // The server would count it twice.
        isOnce: most > 0,
      })
      return toPermission(fromBinary(RateLimitResponseSchema, response), this.#limit.domain)
    } catch (error) {
      if (!(error instanceof Error)) throw error
      if (this.#limit.failsOpen !== true) return unavailable(error)
      const note = `not counted, continues without the server (FailOpen): ${error.message}`
      if (!exchange.isOver) addNote(exchange, 'traffic.rateLimit', note)
      return undefined
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
    for (const descriptor of this.#descriptors) {
      if (descriptor.counts !== 'tokens') continue
      for (const expression of expressionsOf(descriptor)) {
        if (expression.isLate === late) expression.note(exchange)
      }
    }
  }

  /**
   * Returns the entries of each descriptor that has all of its values, or a refusal if an expression fails, such as
   * for a body over the limit.
   */
  #values(
    exchange: Exchange,
    what: LimitUnit,
    given: number | undefined,
  ): SentDescriptor[] | RespondVerdict {
    const found: SentDescriptor[] = []
    for (const descriptor of this.#descriptors) {
      const { counts, entries, cost, limit } = descriptor
      if (counts !== what) continue
      const values: DescriptorEntry[] = []
      for (const { key, expression } of entries) {
        const value = expression.textFor(exchange)
        if (isCelError(value)) return failedEntry(key, value)
        if (value !== undefined) values.push({ key, value })
      }
      if (values.length !== entries.length) continue
      const hits = hitsOf(given ?? costOf(descriptor, exchange))
      if (hits === undefined)
        return failedLimit(`the cost expression ${cost?.source} does not give a number`)
      const overridden = limit?.valueFor(exchange)
      found.push({ entries: values, hits, ...(overridden && { limit: overridden }) })
    }
    return found
  }
}

/** Largest number of hits that Envoy's rate limit service accepts for a descriptor. */
const maxHits = 1_000_000_000

const hitsOf = (cost: number | undefined): number | undefined =>
  cost === undefined ? undefined : Math.min(maxHits, Math.max(0, Math.trunc(cost)))

const costOf = ({ cost }: BoundDescriptor, exchange: Exchange): number | undefined =>
  cost === undefined ? 1 : numberOf(cost.resultFor(exchange))

const expressionsOf = ({ entries, cost, limit }: BoundDescriptor) => [
  ...entries.map(({ expression }) => expression),
  ...(cost === undefined ? [] : [cost]),
  ...(limit === undefined ? [] : [limit]),
]

interface SentDescriptor {
  readonly entries: DescriptorEntry[]
  readonly hits: number
  readonly limit?: OverriddenLimit
}

interface DescriptorEntry {
  readonly key: string
  readonly value: string
}

const failedEntry = (key: string, error: CelError) =>
  failedLimit(`the entry ${key} failed: ${errorText(error)}`)

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
