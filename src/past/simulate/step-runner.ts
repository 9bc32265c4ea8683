/**
 * Runs the steps of policies. If a step needs an unknown input, its verdict comes from the record, or from an
 * assumption of the user; otherwise the request is undecided and ends there.
 */

import type { Step } from '../../gateway/policies/define.ts'
import { policiesByName } from '../../gateway/policies/registry.ts'
import { configDigest, originOf, policyText } from '../../gateway/proxy/config/policies.ts'
import type { WholeBody } from '../../ground/base/buffers.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import { type Exchange, next, type Verdict } from '../../ground/exchange/exchange.ts'
import type { PolicyResource } from '../../ground/model/resources.ts'
import type { RecordedDecision, RecordedStep } from '../decisions/record.ts'
import { SimulatedExchange } from './exchange.ts'
import { changesRequest, doubt, effectsOf, type StepEffects } from './step-effects.ts'
import type { Basis, SimulatedStep, StepObject } from './types.ts'

/** Returns the generation of an object, given as `Kind namespace/name`; undefined if it is unknown. */
export type GenerationOf = (object: string) => number | undefined

/** A verdict that the user assumes for a step: `pass`, or the status of a response. */
export type Assumption = 'pass' | number

interface StepInfo {
  readonly name: string
  readonly from: readonly StepObject[]
  readonly config: string
  readonly effects: StepEffects
  /** The recorded step, which all requests share that pass it. */
  passed?: SimulatedStep
}

const noResponse: Partial<RecordedDecision['response']> = {}

export class StepRunner {
  readonly #infos = new WeakMap<Step, StepInfo>()
  readonly #assumed: ReadonlyMap<string, Assumption>
  readonly #generationOf: GenerationOf

  constructor(assumed: ReadonlyMap<string, Assumption>, generationOf: GenerationOf) {
    this.#assumed = assumed
    this.#generationOf = generationOf
  }

  run(step: Step, exchange: Exchange): Verdict | Promise<Verdict> {
    const info = this.#infoOf(step)
    if (info === undefined || !(exchange instanceof SimulatedExchange)) {
      return step.onRequest?.(exchange) ?? next
    }
    exchange.unknowns.begin()
    try {
      const verdict = step.onRequest?.(exchange) ?? next
      if (!(verdict instanceof Promise)) return this.#settle(info, exchange, verdict)
      return verdict.then(
        (settled) => this.#settle(info, exchange, settled),
        (error: unknown) => this.#fail(info, exchange, error),
      )
    } catch (error) {
      return this.#fail(info, exchange, error)
    }
  }

  /** Adds a step of a backend that refuses a request. */
  refuse(
    step: Step | undefined,
    exchange: SimulatedExchange,
    reason: string,
    status: number,
  ): void {
    const own = step && this.#infoOf(step)
    const info = own ?? { name: 'backend.mcp', from: [], config: '' }
    exchange.steps.push(stepOf(info, 'answer', 'computed', reason, status))
  }

  #fail(info: StepInfo, exchange: SimulatedExchange, error: unknown): Verdict | Promise<Verdict> {
    const unknown = exchange.unknowns.end()
    if (unknown !== undefined) return this.#decideUnknown(info, exchange, unknown)
    const { code, row, message } =
      error instanceof GatewayError ? error : new GatewayError('bug', String(error))
    const reason = `${code}: ${message}`
    exchange.steps.push(stepOf(info, 'answer', 'computed', reason, row.status))
    throw error
  }

  #settle(
    info: StepInfo,
    exchange: SimulatedExchange,
    verdict: Verdict,
  ): Verdict | Promise<Verdict> {
    const unknown = exchange.unknowns.end()
    if (unknown !== undefined) return this.#decideUnknown(info, exchange, unknown)
    // The proxy also counted requests that have no record, so its own verdict is the better one.
    if (info.name === 'traffic.rateLimit') {
      const recorded = recordedStep(info, exchange)
      if (recorded !== undefined) return this.#takeRecorded(info, exchange, recorded)
    }
    if (verdict.kind === 'next') {
      info.passed ??= stepOf(info, 'pass', 'computed')
      exchange.steps.push(info.passed)
      return verdict
    }
    const reason = verdict.detail ?? textOf(verdict.body) ?? verdict.reason
    exchange.detail = reason
    exchange.steps.push(stepOf(info, 'answer', 'computed', reason, verdict.status))
    return verdict
  }

  #decideUnknown(
    info: StepInfo,
    exchange: SimulatedExchange,
    reason: string,
  ): Verdict | Promise<Verdict> {
    exchange.unknowns.reason = undefined
    const recorded = recordedStep(info, exchange)
    if (recorded !== undefined) return this.#takeRecorded(info, exchange, recorded)
    const assumed = this.#assumed.get(info.name)
    if (assumed !== undefined) return this.#assume(info, exchange, assumed)
    if (passesAlways(info, exchange)) return pass(info, exchange, 'computed')
    exchange.steps.push(stepOf(info, 'undecided', 'computed', reason))
    exchange.decide({ verdict: 'undecided', reason: `${info.name}: ${reason}` })
    // The request ends here, so the promise never resolves and no further phase runs.
    return new Promise(() => undefined)
  }

  #takeRecorded(info: StepInfo, exchange: SimulatedExchange, { verdict }: RecordedStep): Verdict {
    if (verdict === 'pass') return pass(info, exchange, 'recorded')
    const {
      status = 0,
      reason = '',
      error,
      detail,
    } = exchange.input.recorded?.response ?? noResponse
    return respond(info, exchange, 'recorded', status, detail ?? error ?? reason)
  }

  #assume(info: StepInfo, exchange: SimulatedExchange, assumed: Assumption): Verdict {
    if (assumed === 'pass') return pass(info, exchange, 'assumed')
    return respond(info, exchange, 'assumed', assumed, 'assumed')
  }

  #infoOf(step: Step): StepInfo | undefined {
    const known = this.#infos.get(step)
    if (known !== undefined) return known
    const origin = originOf(step)
    if (origin === undefined) return undefined
    const { name, policies } = origin
    const from = policies.map((policy) => this.#objectOf(policy))
    const info = { name, from, config: configDigest(origin), effects: effectsOf(name, policies) }
    this.#infos.set(step, info)
    return info
  }

  #objectOf(policy: PolicyResource): StepObject {
    const object = policyText(policy)
    const generation = this.#generationOf(object)
    return { object, ...(generation !== undefined && { generation }) }
  }
}

function stepOf(
  { name, from, config }: Omit<StepInfo, 'effects'>,
  verdict: SimulatedStep['verdict'],
  basis: Basis,
  reason?: string,
  status?: number,
): SimulatedStep {
  return { step: name, ...from.at(-1), from, verdict, basis, reason, status, config }
}

/** Lets the request pass a step that did not run. */
function pass({ effects, ...info }: StepInfo, exchange: SimulatedExchange, basis: Basis): Verdict {
  doubt(exchange, effects, `${info.name} may have changed it`)
  exchange.steps.push(stepOf(info, 'pass', basis))
  return next
}

function respond(
  info: StepInfo,
  exchange: SimulatedExchange,
  basis: Basis,
  status: number,
  reason: string,
): Verdict {
  exchange.detail = reason
  exchange.steps.push(stepOf(info, 'answer', basis, reason, status))
  return { kind: 'respond', status, reason }
}

/**
 * Returns the record of a step with the same configuration, unless steps before it were different, so that it
 * would have other inputs. A policy can run before and after routing, so equal steps are counted.
 */
function recordedStep(
  { name, config, effects }: StepInfo,
  { input, steps }: SimulatedExchange,
): RecordedStep | undefined {
  const all = input.recorded?.steps ?? []
  let left = steps.filter((step) => step.step === name && step.config === config).length
  const at = all.findIndex((step) => step.step === name && step.config === config && left-- === 0)
  const readsRequest = name !== 'traffic.rateLimit' || effects.headers === 'all'
  return readsRequest && changesBefore(all.slice(0, at)) !== changesBefore(steps)
    ? undefined
    : all[at]
}

/** Identifies the steps that may change what later steps read. */
const changesBefore = (steps: readonly Pick<RecordedStep, 'step' | 'config'>[]): string =>
  steps
    .filter(({ step }) => changesRequest(step))
    .map(({ step, config }) => `${step} ${config}`)
    .join()

/** CORS answers preflight requests only. */
const passesAlways = ({ name }: StepInfo, { request }: SimulatedExchange): boolean =>
  policiesByName.get(name)?.endsRequest === false ||
  (name === 'traffic.cors' && request.method !== 'OPTIONS')

const textOf = (body: WholeBody | undefined): string | undefined =>
  typeof body === 'string' && body !== '' ? body : undefined
