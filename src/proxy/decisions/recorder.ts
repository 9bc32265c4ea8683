/**
 * Records what the proxy decided about requests. A record is written when the exchange is over, from the
 * state that is kept for every request anyway.
 */
import { redacted } from '../../base/credential-names.ts'
import { changeQuery } from '../../base/query-string.ts'
import type { DecisionLog } from '../../decisions/decision-log.ts'
import { idHeader, type RequestContext, type RequestNamer } from '../request/request-context.ts'
import type { AccessRecord } from '../telemetry/types.ts'
import { DecisionWriter } from './decision-writer.ts'
import type { ReceivedHeaders } from './received-headers.ts'

interface RecorderOptions {
  readonly log: DecisionLog
  readonly headers: ReceivedHeaders
  /** Share of the requests to record that succeed, 0 to 1. All that fail are recorded. */
  readonly share: number
  /** Names of further query parameters that carry credentials, in lower case. */
  readonly hidden: ReadonlySet<string>
  readonly random: () => number
  /** Begins the ids that the recorder makes, so that those of several recorders differ. */
  readonly idPrefix: string
}

/** Wall-clock time at which the clock of `startedAt` began. */
const { timeOrigin } = performance
/** Ids of clients that are kept. */
const validId = /^[\w.~+/=:@-]{1,128}$/

export class DecisionRecorder implements RequestNamer {
  /** Number of records that were written. */
  recorded = 0
  readonly #options: RecorderOptions
  readonly #writer: DecisionWriter
  /** Number of ids that were made. */
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

  #idOf({ exchange }: RequestContext): string {
    const sent = exchange.request.headers.get(idHeader)
    if (sent !== undefined && validId.test(sent)) return sent
    this.#made++
    return `${this.#options.idPrefix}-${this.#made}`
  }

  /** Records a request that is over, if it was chosen or has failed. */
  record(context: RequestContext, access: AccessRecord): void {
    const { exchange } = context
    if (context.requestId === undefined) {
      const isSuccess = access.status > 0 && access.status < 400
      if (isSuccess && exchange.ending === 'complete') return
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

  /** Hides the values of the parameters that a setting names. */
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
