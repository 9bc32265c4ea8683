/**
 * Records what the proxy decided about requests. A record is written when the exchange is over, from state
 * that every request has.
 */

import { changeQuery } from '../../../ground/base/query-string.ts'
import { redacted } from '../../../ground/secrets/credential-names.ts'
import type { DecisionLog } from '../../../past/decisions/decision-log.ts'
import { idHeader, type RequestContext, type RequestNamer } from '../request/request-context.ts'
import type { AccessRecord } from '../telemetry/types.ts'
import { DecisionWriter } from './decision-writer.ts'
import type { ReceivedHeaders } from './received-headers.ts'

interface RecorderOptions {
  readonly log: DecisionLog
  readonly headers: ReceivedHeaders
  /** Share of successful requests to record, 0 to 1. All failed requests are recorded. */
  readonly share: number
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

  idFor(context: RequestContext, status: number): string | undefined {
    const { share, random } = this.#options
    if (status < 400 && (share === 0 || (share < 1 && random() >= share))) return undefined
    context.requestId ??= this.#idOf(context)
    return context.requestId
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
    const { exchange } = context
    if (context.requestId === undefined) {
      const isSuccess = access.status > 0 && access.status < 400
      const isWanted = access.record?.isAlwaysRecorded === true
      if (isSuccess && exchange.ending === 'complete' && !isWanted) return
      context.requestId = this.#idOf(context)
    }
    const { log } = this.#options
    const block = log.block()
    if (block === undefined) return
    const startedMs = timeOrigin + exchange.startedAt - log.baseMs
    const path = this.#withoutHidden(access.path)
    this.#writer.write(block, context, access, path, Math.round(startedMs * 1000))
    this.recorded++
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
