import { type CelResult, isCelError, isMap, mapGet } from '../../../engines/cel/index.ts'
import type { Exchange } from '../../../ground/exchange/exchange.ts'
import { LimitExpression, numberOf } from '../limit-expression.ts'

/** A limit that replaces the one of the server. */
export interface OverriddenLimit {
  readonly requestsPerUnit: number
  /** Number of Envoy's enum RateLimitUnit. */
  readonly unit: number
}

const extension = 'rateLimit.overrides'
/** Largest value of uint32. */
const maxRequests = 4_294_967_295
const units = ['second', 'minute', 'hour', 'day', 'month', 'year']

/** An expression for the limit of a descriptor: a map of requestsPerUnit and unit. */
export class LimitOverride {
  readonly #expression: LimitExpression

  constructor(source: string) {
    this.#expression = new LimitExpression(source)
  }

  get readsBody(): boolean {
    return this.#expression.readsBody
  }

  get isLate(): boolean {
    return this.#expression.isLate
  }

  /** Evaluates the expression and stores the limit, so that later changes of the request do not change it. */
  note(exchange: Exchange): void {
    const noted = notedIn(exchange) ?? new Map<LimitOverride, OverriddenLimit | undefined>()
    noted.set(this, this.#limitFor(exchange))
    exchange.extensions.set(extension, noted)
  }

  /** Returns the limit; undefined if the expression gives none, so that the server applies its own. */
  valueFor(exchange: Exchange): OverriddenLimit | undefined {
    const noted = notedIn(exchange)
    return noted?.has(this) === true ? noted.get(this) : this.#limitFor(exchange)
  }

  #limitFor(exchange: Exchange): OverriddenLimit | undefined {
    const result = this.#expression.resultFor(exchange)
    if (isCelError(result) || !isMap(result)) return undefined
    const requestsPerUnit = numberOf(mapGet(result, 'requestsPerUnit'))
    const unit = unitOf(mapGet(result, 'unit'))
    if (requestsPerUnit === undefined || unit < 1) return undefined
    return { requestsPerUnit: Math.min(Math.trunc(requestsPerUnit), maxRequests), unit }
  }
}

const notedIn = ({ extensions }: Exchange) =>
  extensions.get(extension) as Map<LimitOverride, OverriddenLimit | undefined> | undefined

/** Accepts `minute`, `MINUTE` and `Minutes`. Returns 0 for other values. */
function unitOf(value: CelResult | undefined): number {
  if (typeof value !== 'string') return 0
  return units.indexOf(value.toLowerCase().replace(/s$/, '')) + 1
}
