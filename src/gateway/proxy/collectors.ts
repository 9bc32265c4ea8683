/** Sends what policies export about finished requests to OpenTelemetry collectors. */
import type { ServerExchange } from '../../engines/http/contracts/requests.ts'
import type { ExportRules } from '../../ground/exchange/observe.ts'
import type { DirectTarget } from '../../ground/model/resources.ts'
import { resolveCollector } from './callouts/destination.ts'
import type { ListenerPlacement } from './config/placement.ts'
import type { PlaneRuntime } from './plane-runtime.ts'
import type { RequestContext } from './request/request-context.ts'
import { finishTrace } from './request/tracing.ts'
import { Exporters } from './telemetry/otlp/exporter.ts'
import { type LogRecord, logRecordOf, logSignal } from './telemetry/otlp/log-records.ts'
import { type FinishedSpan, spanSignal } from './telemetry/otlp/spans.ts'
import type { AccessRecord, ExportedSignal, Telemetry } from './telemetry/types.ts'

export class Collectors {
  readonly #spans: Exporters<FinishedSpan, ListenerPlacement>
  readonly #logs: Exporters<LogRecord, ListenerPlacement>

  constructor(runtime: PlaneRuntime, telemetry: Telemetry) {
    const { version } = runtime
    const resolve = ({ target }: ExportRules, listener: ListenerPlacement) =>
      resolveCollector(runtime, target as DirectTarget, listener)
    const onExport = (signal: ExportedSignal) => (sent: number, dropped: number) =>
      telemetry.onExport(signal, sent, dropped)
    const shared = { version, resolve }
    this.#spans = new Exporters({ ...shared, signal: spanSignal, onExport: onExport('spans') })
    this.#logs = new Exporters({ ...shared, signal: logSignal, onExport: onExport('logs') })
  }

  /** Queues the spans and the log entry of a finished exchange. */
  add(context: RequestContext, exchange: ServerExchange, access: AccessRecord): void {
    const { listener, observers, trace } = context
    if (listener === undefined) return
    const { tracing, accessLog } = observers
    if (tracing !== undefined && trace !== undefined) {
      this.#spans.add(tracing, listener, finishTrace(context, access))
    }
    const logs = accessLog?.export
    const entry = logs && logRecordOf(logs, exchange, access)
    if (logs !== undefined && entry !== undefined) this.#logs.add(logs, listener, [entry])
  }

  /** Sends everything that waits. Called before the process ends. */
  async flush(): Promise<void> {
    await Promise.all([this.#spans.flush(), this.#logs.flush()])
  }
}
