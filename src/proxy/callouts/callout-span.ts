/** Calls of policies in traces and metrics. */
import type { CalloutSubtype } from '../../exchange/exchange.ts'
import type { Attribute } from '../../exchange/observe.ts'
import { newSpanId, type RequestTrace } from '../request/request-trace.ts'
import type { Telemetry } from '../telemetry/types.ts'
import type { CalloutExchange } from './callout-exchange.ts'

/** One call, from the time at which it is known where it goes. */
export class CalloutSpan {
  readonly #telemetry: Telemetry
  readonly #subtype: CalloutSubtype
  readonly #exchange: CalloutExchange
  readonly #isGrpc: boolean
  readonly #to: string
  readonly #startedAt = performance.now()
  readonly #trace: RequestTrace | undefined
  readonly #spanId: string = ''
  #isOver = false

  constructor(
    telemetry: Telemetry,
    call: { readonly subtype: CalloutSubtype; readonly isGrpc: boolean; readonly to: string },
    exchange: CalloutExchange,
    trace: RequestTrace | undefined,
  ) {
    this.#telemetry = telemetry
    this.#subtype = call.subtype
    this.#isGrpc = call.isGrpc
    this.#to = call.to
    this.#exchange = exchange
    this.#trace = trace
    if (this.#trace === undefined) return
    this.#spanId = newSpanId()
    exchange.request.headers.set('traceparent', this.#trace.header(this.#spanId))
  }

  /** The call is over; only the first end counts. `error`: why it has failed. */
  end(status?: number, error?: string): void {
    if (this.#isOver) return
    this.#isOver = true
    const endedAt = performance.now()
    this.#telemetry.onCallout(this.#subtype, (endedAt - this.#startedAt) / 1_000)
    const trace = this.#trace
    if (trace === undefined) return
    const { method, authority, path } = this.#exchange.request
    const attributes: Attribute[] = [
      ['sluice.outbound.kind', 'Policy'],
      ['sluice.outbound.subtype', this.#subtype],
      ['http.method', method],
      ['http.host', authority],
      ['http.path', path],
    ]
    if (status !== undefined) attributes.push(['http.status', BigInt(status)])
    trace.finished.push({
      traceId: trace.traceId,
      spanId: this.#spanId,
      parentId: trace.spanId,
      name: this.#isGrpc ? path.slice(1) : `${method} ${this.#to}`,
      kind: 'client',
      startedAt: this.#startedAt,
      endedAt,
      attributes,
      error,
      flags: trace.flags,
    })
  }
}
