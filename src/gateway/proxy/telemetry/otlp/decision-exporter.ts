/**
 * Sends decision records to an OpenTelemetry collector. It runs in the main thread, which carries no traffic: workers
 * hand over the blocks that they write. If the collector is slow, records are dropped and counted.
 */
import { bufferOf } from '../../../../ground/base/buffers.ts'
import type { Attribute } from '../../../../ground/exchange/observe.ts'
import { readBlock } from '../../../../past/decisions/block-reader.ts'
import { framesOf } from '../../../../past/decisions/frame.ts'
import type { MetricsSnapshot } from '../metric-definitions.ts'
import {
  type DecisionLog,
  decisionLogOf,
  decisionSignal,
  type ExportedFields,
} from './decision-logs.ts'
import { type BatchLimits, Exporter } from './exporter.ts'
import type { SendResult } from './senders.ts'
import {
  type OtlpProtocol,
  openTransport,
  type Transport,
  type TransportSettings,
} from './transports.ts'

interface DecisionExportSettings extends TransportSettings {
  readonly protocol: OtlpProtocol
  readonly fields: ExportedFields
  readonly limits: BatchLimits
  readonly resource: readonly Attribute[]
}

interface DecisionExporterOptions extends DecisionExportSettings {
  readonly version: string
  /** Called if the collector does not take a batch, once until it takes one again. */
  readonly onProblem: (text: string) => void
}

export class DecisionExporter {
  readonly #options: DecisionExporterOptions
  readonly #transport: Transport
  readonly #exporter: Exporter<DecisionLog>
  #isFailing = false
  #exported = 0
  #dropped = 0

  constructor(options: DecisionExporterOptions) {
    this.#options = options
    const { protocol, limits, resource, version } = options
    this.#transport = openTransport(options, protocol, decisionSignal.method)
    this.#exporter = new Exporter({
      signal: decisionSignal,
      isJson: protocol === 'http/json',
      limits,
      resource,
      version,
      send: (body) => this.#send(body),
      disconnect: () => this.#transport.close(),
      onExport: (sent, dropped) => {
        this.#exported += sent
        this.#dropped += dropped
      },
    })
  }

  /** Queues the records of framed blocks. */
  publish(frames: Uint8Array): void {
    for (const frame of framesOf(bufferOf(frames))) {
      try {
        if (!('block' in frame)) throw new Error('it is damaged')
        for (const decision of readBlock(frame.block)) {
          this.#exporter.add(decisionLogOf(decision, this.#options.fields))
        }
      } catch (error) {
        // How many records are lost is not known.
        this.#dropped++
        this.#options.onProblem(`a block of decision records is not exported: ${String(error)}`)
      }
    }
  }

  async #send(body: Uint8Array): Promise<SendResult> {
    const answer = await this.#transport.send(body)
    const isWhole = answer.isTaken && answer.rejected === 0
    if (!isWhole && !this.#isFailing) {
      this.#options.onProblem(`decision records are not exported: ${answer.message}`)
    }
    this.#isFailing = !isWhole
    if (answer.isTaken) return { result: 'sent', rejected: answer.rejected }
    return answer.isFinal ? { result: 'refused' } : { result: 'again', afterMs: answer.afterMs }
  }

  metrics(): MetricsSnapshot {
    const one = (value: number) => [{ labels: [], values: [value] }]
    return {
      decisions_exported_total: one(this.#exported),
      decisions_export_dropped_total: one(this.#dropped),
    }
  }

  /** Sends what waits, once. */
  close(): Promise<void> {
    return this.#exporter.flush()
  }
}
