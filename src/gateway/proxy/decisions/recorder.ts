/**
 * Records what the proxy decided about requests. A record is written when the exchange is over, from state
 * that every request has.
 */

import { changeQuery } from '../../../ground/base/query-string.ts'
import { redacted } from '../../../ground/secrets/credential-names.ts'
import type { DecisionLog, RecordShare } from '../../../past/decisions/decision-log.ts'
import { idHeader, type RequestContext, type RequestNamer } from '../request/request-context.ts'
import type { AccessRecord } from '../telemetry/types.ts'
import { DecisionWriter } from './decision-writer.ts'
import type { ReceivedHeaders } from './received-headers.ts'
import type { Sampler } from './sampler.ts'

interface RecorderOptions {
  readonly log: DecisionLog
  readonly headers: ReceivedHeaders
  readonly share: RecordShare
  /** If the share is `sample`: what selects the requests, and the log for those that did not fail. */
  readonly sample?: { readonly sampler: Sampler; readonly log: DecisionLog }
  /** Names of further query parameters that carry credentials, in lower case. */
  readonly hidden: ReadonlySet<string>
  readonly random: () => number
  /** Prefix of the ids that this recorder makes, so that no two recorders make the same id. */
  readonly idPrefix: string
}

/** Wall-clock time at which the monotonic clock of `startedAt` was zero. */
const { timeOrigin } = performance
/** An id that the client sends is kept if it matches. */
const validId = /^[\w.~+/=:@-]{1,128}$/

export class DecisionRecorder implements RequestNamer {
  /** Number of records that were written. */
  recorded = 0
  readonly #options: RecorderOptions
  readonly #writer: DecisionWriter
  /** Number of ids that this recorder has made. */
  #made = 0

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#writer = new DecisionWriter(options.headers)
  }

  /** Requests that are recorded for a sample are chosen at their end. Their responses have no id. */
  idFor(context: RequestContext, status: number): string | undefined {
    if (status < 400 && !this.#isChosen()) return undefined
    context.requestId ??= this.#idOf(context)
    return context.requestId
  }

  #isChosen(): boolean {
    const { share, random } = this.#options
    return share !== 'sample' && share > 0 && (share >= 1 || random() < share)
  }

  /** Returns the id of the client, or that of the upstream, whose support may ask for it, or a new one. */
  #idOf({ exchange: { request, response } }: RequestContext): string {
    const sent = request.headers.get(idHeader)
    if (sent !== undefined && validId.test(sent)) return sent
    const answered = response?.headers.get(idHeader)
    if (answered !== undefined && validId.test(answered)) return answered
    this.#made++
    return `${this.#options.idPrefix}-${this.#made}`
  }

  /** Records a completed request if it was sampled or has failed, or if its backend wants every record. */
  record(context: RequestContext, access: AccessRecord): void {
    const { status } = access
    const isFailure = status === 0 || status >= 400 || context.exchange.ending !== 'complete'
    const isWanted = access.record?.isAlwaysRecorded === true
    const { log, sample, share } = this.#options
    if (isWanted || (sample === undefined && isFailure)) this.#write(log, context, access, 1)
    else if (sample !== undefined) {
      const weight = sample.sampler.weightOf(context, access, isFailure)
      if (weight === 0) return
      const bytes = this.#write(isFailure ? log : sample.log, context, access, weight)
      sample.sampler.charge(isFailure, bytes)
    } else if (context.requestId !== undefined) {
      const isShare = typeof share === 'number' && share > 0
      this.#write(log, context, access, isShare ? 1 / share : 1)
    }
  }

  /** Returns the number of bytes; 0 if the record is lost. */
  #write(log: DecisionLog, context: RequestContext, access: AccessRecord, weight: number): number {
    context.requestId ??= this.#idOf(context)
    const block = log.block()
    if (block === undefined) return 0
    const { used } = block
    const startedMs = timeOrigin + context.exchange.startedAt - log.baseMs
    const startedUs = Math.round(startedMs * 1000)
    this.#writer.write(block, context, access, this.#withoutHidden(access.path), startedUs, weight)
    this.recorded++
    return block.used - used
  }

  /** Hides the values of the query parameters that the setting names. */
  #withoutHidden(path: string): string {
    const { hidden } = this.#options
    const start = path.indexOf('?') + 1
    if (hidden.size === 0 || start === 0) return path
    const query = changeQuery(path.slice(start), (parameter, name) =>
      hidden.has(name.toLowerCase()) ? `${parameter.split('=', 1)[0]}=${redacted}` : parameter,
    )
    return path.slice(0, start) + (query ?? '')
  }
}
