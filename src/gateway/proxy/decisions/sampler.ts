/**
 * Selects the requests that `--record sample` records. Requests that pass are divided by rule, model or backend, and
 * principal. Of the n requests that a part has had within ten minutes, each is recorded with the probability k/n, so
 * that rare ones are recorded like frequent ones. A record stands for the requests of its part since the one before it.
 * Failures are all recorded, unless there are so many that they are sampled in the same way, by rule and reason.
 *
 * Both have a budget of bytes. While it is used up, nothing is recorded, and the next records stand for more requests.
 */
import { BoundedMap } from '../../../ground/base/bounded-map.ts'
import type { Exchange } from '../../../ground/exchange/exchange.ts'
import { objectText } from '../../../ground/model/names.ts'
import { principalName } from '../../principal/principal.ts'
import type { CompiledRule } from '../config/rules.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { AccessRecord } from '../telemetry/types.ts'

const windowMs = 600_000
/** Number of requests of a part that are recorded in a window before it is sampled. */
const passedAtFirst = 8
const failuresAtFirst = 128
/** Maximum number of parts of a rule. Requests of further models and principals share one. */
const maxParts = 256
/** Maximum number of rules whose counts survive a change of the configuration. */
const maxRules = 4_096

/** Bytes a second of all workers, and the number of seconds that can be saved up. */
const passedBytes = 2_000
const failureBytes = 50_000
const savedSeconds = 128

class ByteBudget {
  readonly #perMs: number
  readonly #most: number
  #left: number
  #atMs = 0

  constructor(perSecond: number) {
    this.#perMs = perSecond / 1_000
    this.#most = perSecond * savedSeconds
    this.#left = this.#most
  }

  /** The part of the budget that is left, at most 1; negative after a record that was larger. */
  left(nowMs: number): number {
    const elapsed = Math.max(0, nowMs - this.#atMs)
    this.#atMs = nowMs
    this.#left = Math.min(this.#most, this.#left + elapsed * this.#perMs)
    return this.#left / this.#most
  }

  charge(bytes: number): void {
    this.#left -= bytes
  }
}

/** Requests of which each record stands for the others. */
class Part {
  /** Number of requests since the last record. */
  since = 0
  /** Number of requests in the window. */
  seen = 0
  window = -1
  /** Number of requests to skip after the last record. */
  wait = 0
}

class RuleParts {
  readonly #passed = new Map<string, Map<string, Part>>()
  readonly #failures = new Map<string, Part>()
  readonly #others = new Part()
  #size = 0
  #fullIn = -1

  passed(name: string, principal: string, window: number): Part {
    return this.#passed.get(name)?.get(principal) ?? this.#addPassed(name, principal, window)
  }

  #addPassed(name: string, principal: string, window: number): Part {
    if (this.#size >= maxParts) {
      if (this.#fullIn === window) return this.#others
      this.#fullIn = window
      this.#forget()
    }
    this.#size++
    const part = new Part()
    const parts = this.#passed.get(name)
    if (parts === undefined) this.#passed.set(name, new Map([[principal, part]]))
    else parts.set(principal, part)
    return part
  }

  /** Makes room for models and principals of the present. */
  #forget(): void {
    for (const parts of this.#passed.values()) {
      for (const { since } of parts.values()) this.#others.since += since
    }
    this.#passed.clear()
    this.#size = 0
  }

  failed(reason: string): Part {
    let part = this.#failures.get(reason)
    if (part === undefined) {
      part = new Part()
      this.#failures.set(reason, part)
    }
    return part
  }
}

export class Sampler {
  readonly #random: () => number
  readonly #passed: ByteBudget
  readonly #failures: ByteBudget
  readonly #rules = new WeakMap<CompiledRule, RuleParts>()
  /** The parts by the names of rules, because each change of a route makes new rules. */
  readonly #byName = new BoundedMap<string, RuleParts>(maxRules)
  readonly #unrouted = new RuleParts()
  #window = 0
  #windowEndMs = windowMs

  constructor(workers: number, random: () => number) {
    this.#random = random
    this.#passed = new ByteBudget(passedBytes / workers)
    this.#failures = new ByteBudget(failureBytes / workers)
  }

  /** Counts a request. Returns the number of requests that its record stands for; 0 if it is not recorded. */
  weightOf(context: RequestContext, access: AccessRecord, isFailure: boolean): number {
    const { exchange, placement } = context
    const rule = placement === undefined ? this.#unrouted : this.#partsOf(placement.rule)
    if (exchange.endedAt >= this.#windowEndMs) this.#beginWindow(exchange.endedAt)
    const window = this.#window
    const part = isFailure
      ? rule.failed(access.reason)
      : rule.passed(access.record?.model ?? access.backend ?? '', principalOf(exchange), window)
    part.since++
    if (part.window !== window) {
      part.window = window
      part.seen = 0
      part.wait = 0
    }
    part.seen++
    const isSkipped = part.since <= part.wait
    if (isSkipped && !isFailure) return 0
    const left = (isFailure ? this.#failures : this.#passed).left(exchange.endedAt)
    if (left <= 0 || (isSkipped && left < 0.5)) return 0
    const weight = part.since
    part.since = 0
    const atFirst = isFailure ? failuresAtFirst : passedAtFirst
    if (part.seen >= atFirst) part.wait = Math.floor((this.#random() * 2 * part.seen) / atFirst)
    return weight
  }

  #beginWindow(nowMs: number): void {
    this.#window = Math.floor(nowMs / windowMs)
    this.#windowEndMs = (this.#window + 1) * windowMs
  }

  /** Subtracts the bytes of a record from the budget. */
  charge(isFailure: boolean, bytes: number): void {
    const budget = isFailure ? this.#failures : this.#passed
    budget.charge(bytes)
  }

  #partsOf(rule: CompiledRule): RuleParts {
    return this.#rules.get(rule) ?? this.#addRule(rule)
  }

  #addRule(rule: CompiledRule): RuleParts {
    const { route, ruleIndex } = rule.resource
    const name = `${objectText(route)} ${ruleIndex}`
    const parts = this.#byName.get(name) ?? new RuleParts()
    this.#byName.set(name, parts)
    this.#rules.set(rule, parts)
    return parts
  }
}

/** Like `principalName`, but makes no text for user names. */
function principalOf(exchange: Exchange): string {
  const { apiKey, jwt, basicAuth } = exchange.learned
  if (apiKey === undefined && jwt === undefined && basicAuth?.username) return basicAuth.username
  return principalName(exchange) ?? ''
}
