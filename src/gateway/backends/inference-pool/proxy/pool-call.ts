/**
 * One request to an InferencePool: its conversation with the endpoint picker, and the endpoints
 * that are left to try.
 *
 * ```
 *   picker ◄── head, body ── request           response ── head, body ──► picker
 *      └── endpoints, in order ──► forward ──► first ── fails ──► second …   └──► client
 * ```
 */
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { Exchange, RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { takeResponse } from '../../../../ground/exchange/interruption.ts'
import { addNote } from '../../../../ground/exchange/notes.ts'
import { takeOver } from '../../../../ground/exchange/take-over.ts'
import { appProtocolOf } from '../../../../ground/model/app-protocols.ts'
import type { EndpointPicker } from '../../../../ground/model/inference-pools.ts'
import { BodyLedger } from '../../../policies/ext-proc/body-ledger.ts'
import { isOwnAnswer, sendRequest, sendResponse } from '../../../policies/ext-proc/converse.ts'
import { Processing, responseIn } from '../../../policies/ext-proc/processing.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import type { NamedTarget } from '../../../proxy/config/rules.ts'
import type { BackendCall } from '../../../proxy/request/backend-call.ts'
import { atMember, usableAccess } from '../../../proxy/request/destinations.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import type { MetricsSnapshot } from '../../../proxy/telemetry/metric-definitions.ts'
import { timedCounters } from '../../../proxy/telemetry/timed-counters.ts'
import type { BackendRecord, BackendTelemetry } from '../../../proxy/telemetry/types.ts'
import type { UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import { chooseEndpoint, now } from '../../../proxy/upstream/endpoint.ts'
import { upstreamVersion } from '../../../proxy/upstream/http-version.ts'
import {
  candidates,
  destinationKey,
  namedIn,
  pickedFrom,
  pickerTls,
  servedBy,
} from './endpoint-picker.ts'
import type { Pool, PoolTable } from './pools.ts'

/** Name of the picker in the record of a decision. */
const pickerStep = 'endpointPicker'

/** The result of asking an endpoint picker. */
type PickOutcome = 'picked' | 'fail_open' | 'fail_closed' | 'answered'

/** A pool with the policies of the backendRef. */
interface UsablePool {
  readonly pool: Pool
  readonly access: BackendAccess
}

export class PoolCall implements BackendCall, BackendRecord {
  readonly #context: RequestContext
  readonly #runtime: GatewayRuntime
  readonly #pools: PoolTable
  readonly #backend: NamedTarget
  /** The policies of the backend that sends the request to the pool; undefined if a route does. */
  readonly #given: BackendAccess | undefined
  /** Name of the pool, as `namespace/name`. */
  readonly name: string
  failureMode: EndpointPicker['failureMode'] = 'FailClose'
  /** Undefined if the request ended before the picker answered. */
  outcome: PickOutcome | undefined
  pickSeconds = 0
  /** Why the picker picked no endpoint. */
  #problem: string | undefined
  /** The message exchange with the picker; undefined before the picker is asked. */
  #processing: Processing | undefined
  #askedAt = 0
  #picked: readonly UpstreamEndpoint[] = []
  /** Index of the picked endpoint that was tried last. */
  #at = -1
  #last: UpstreamEndpoint | undefined

  constructor(
    context: RequestContext,
    runtime: GatewayRuntime,
    pools: PoolTable,
    {
      backend,
      access,
    }: { readonly backend: NamedTarget; readonly access?: BackendAccess | undefined },
  ) {
    this.#context = context
    this.#runtime = runtime
    this.#pools = pools
    this.#backend = backend
    this.#given = access
    this.name = backend.name
  }

  get record(): this | undefined {
    return this.#processing && this
  }

  eachField(visit: Parameters<BackendRecord['eachField']>[0]): void {
    const ms = Math.trunc(this.pickSeconds * 1_000)
    visit('inference.pool', this.name, false)
    visit('inference.pick', this.outcome, false)
    visit('inference.pick.duration', this.outcome === undefined ? undefined : `${ms}ms`, false)
    visit('inference.pick.error', this.#problem, true)
  }

  /**
   * Sets the destination. Before the first attempt, asks the picker of the pool, which may respond to the
   * request itself. Throws or rejects with `backend_invalid`, `policy_unenforceable`, `no_endpoints`,
   * `overloaded` or `endpoint_picker_failed`.
   */
  resolve(): undefined | Promise<RespondVerdict | undefined> {
    const { placement } = this.#context
    if (placement === undefined) throw new GatewayError('no_backends')
    const pool = this.#pools.find(this.name)
    const { picker, unusable } = pool?.resource ?? {}
    // Backends refer to pools without a picker, but not to those whose picker is missing.
    if (pool === undefined || (picker === undefined && this.#given === undefined)) {
      throw new GatewayError('backend_invalid', unusable ?? this.name)
    }
    const usable = { pool, access: this.#given ?? usableAccess(placement, this.#backend) }
    if (this.#processing === undefined && picker !== undefined) {
      return this.#askPicker(usable, picker)
    }
    this.#setDestination(usable)
    return undefined
  }

  async #askPicker(
    usable: UsablePool,
    picker: EndpointPicker,
  ): Promise<RespondVerdict | undefined> {
    const { exchange } = this.#context
    const { pool } = usable
    if (pool.endpoints().size === 0) throw new GatewayError('no_endpoints', this.name)
    this.failureMode = picker.failureMode
    this.#askedAt = now()
    let named: string | undefined
    const processing = this.#converse(picker, (text) => {
      named = text
    })
    this.#context.keepOriginal()
    // Only the picker may choose the endpoint, so remove the header if the client sent it.
    exchange.request.headers.remove(destinationKey)
    try {
      const metadata = candidates(pool, this.#runtime.cap?.most)
      await sendRequest(exchange, processing, { metadata })
      const text = named ?? exchange.request.headers.get(destinationKey)
      const picked = pickedFrom(text, pool.endpoints())
      if (typeof picked !== 'string') {
        this.#picked = picked
        this.#settle('picked')
      } else if (picker.failureMode === 'FailOpen') this.#settle('fail_open', picked)
      else throw new GatewayError('endpoint_picker_failed', picked)
    } catch (error) {
      const answer = responseIn(error)
      if (answer !== undefined) {
        takeResponse(exchange)
        this.#settle('answered')
        return answer
      }
      this.#failOver(processing, error)
    }
    this.#setDestination(usable)
    return undefined
  }

  #converse({ target, failureMode }: EndpointPicker, onNamed: (text: string) => void): Processing {
    const { exchange } = this.#context
    const { callouts, config } = this.#runtime
    const processing = new Processing({
      target,
      exchange,
      callouts,
      isPicker: true,
      defaultTls: () => pickerTls(config, target),
      learn: (metadata) => {
        const named = namedIn(metadata)
        if (named !== undefined) onNamed(named)
      },
    })
    const { bufferLimit } = exchange
    if (failureMode === 'FailOpen') processing.request.ledger = new BodyLedger(bufferLimit)
    // Keep a copy of the response body, so that the response survives a failure of the picker.
    processing.response.ledger = new BodyLedger(bufferLimit)
    this.#processing = processing
    return processing
  }

  #settle(outcome: PickOutcome, problem?: string): void {
    this.outcome = outcome
    this.#problem = problem
    this.pickSeconds = (now() - this.#askedAt) / 1_000
    if (problem === undefined || outcome === 'fail_closed') return
    addNote(
      this.#context.exchange,
      pickerStep,
      `no endpoint picked, continues (FailOpen): ${problem}`,
    )
  }

  /** If the picker failed and the failure mode is FailOpen, continues without it; otherwise throws. */
  #failOver(processing: Processing, error: unknown): void {
    const problem = error instanceof Error ? error.message : String(error)
    const isPickerFailure = error instanceof GatewayError && error.code === 'endpoint_picker_failed'
    const failsOpen = this.failureMode === 'FailOpen'
    const continues = isPickerFailure && failsOpen && processing.request.continueAlone()
    this.#settle(continues ? 'fail_open' : 'fail_closed', problem)
    processing.close()
    if (!continues) throw error
  }

  #setDestination({ pool, access }: UsablePool): void {
    const { resource } = pool
    const endpoint = this.#next(pool)
    if (endpoint === undefined || resource === undefined) {
      throw new GatewayError('no_endpoints', this.name)
    }
    const { name, namespace, appProtocol } = resource
    const host = `${name}.${namespace}.inference.${this.#runtime.resolver.clusterDomain}`
    const { port } = endpoint.address
    const { connection } = access.policies
    const { request } = this.#context.exchange
    const version = upstreamVersion(connection, request, appProtocolOf(appProtocol)?.version)
    this.#context.destination = atMember(this.#runtime, { host, port, access, version }, endpoint)
  }

  /** Returns the next picked endpoint. If none was picked, returns the better of two random endpoints. */
  #next(pool: Pool): UpstreamEndpoint | undefined {
    const { random, cap } = this.#runtime
    if (this.#picked.length === 0) {
      this.#last = chooseEndpoint(pool.endpointSet(), { random, now, most: cap?.most }, this.#last)
    } else {
      this.#at = (this.#at + 1) % this.#picked.length
      this.#last = this.#picked[this.#at]
    }
    return this.#last
  }

  /** Returns true if the endpoint was unreachable and the picker named another one to try. */
  hasAnother(failure: number | GatewayError): boolean {
    if (typeof failure === 'number') return false
    const isUnreachable = failure.row.source === 'upstream' && failure.row.retry === 'yes'
    return isUnreachable && this.#at + 1 < this.#picked.length
  }

  /** Ends the exchange of messages with the picker. */
  finish(): void {
    this.#processing?.close()
  }

  /** Sends the response to the picker, which may change it. Returns undefined if it is not sent. */
  changeResponse(exchange: Exchange): Promise<void> | undefined {
    const processing = this.#processing
    if (processing === undefined || processing.hasPassed) return undefined
    if (this.#last === undefined || isOwnAnswer(exchange)) return undefined
    return changeByPicker(exchange, processing, this.#last)
  }
}

async function changeByPicker(
  exchange: Exchange,
  processing: Processing,
  endpoint: UpstreamEndpoint,
): Promise<void> {
  try {
    await sendResponse(exchange, processing, { metadata: servedBy(endpoint) })
  } catch (error) {
    const answer = responseIn(error)
    if (answer !== undefined) {
      takeResponse(exchange)
      takeOver(exchange, answer, pickerStep)
    } else if (!processing.response.continueAlone()) throw error
  }
}

/** Metrics of endpoint pickers. */
export class PoolTelemetry implements BackendTelemetry {
  readonly #picks = timedCounters('inference_pick_duration_seconds')

  count(record: BackendRecord): void {
    const pool = record instanceof PoolCall ? record : record.inner
    if (!(pool instanceof PoolCall) || pool.outcome === undefined) return
    const { name, failureMode, outcome, pickSeconds } = pool
    this.#picks.record([name, failureMode, outcome], pickSeconds, 0)
  }

  snapshot(): MetricsSnapshot {
    return {
      inference_picks_total: this.#picks.counts(),
      inference_pick_duration_seconds: this.#picks.durations(),
    }
  }
}
