/** Access log fields and metrics of A2A requests. Clients cannot choose the value of any label. */
import type { ServerExchange } from '../../../../engines/http/contracts/requests.ts'
import { otherValues } from '../../../proxy/telemetry/label-values.ts'
import type { MetricsSnapshot } from '../../../proxy/telemetry/metric-definitions.ts'
import { type Label, TimedCounters } from '../../../proxy/telemetry/timed-counters.ts'
import type {
  AccessRecord,
  BackendRecord,
  BackendTelemetry,
} from '../../../proxy/telemetry/types.ts'
import type { A2aRequest } from '../protocol/message.ts'
import type { A2aOutcome } from '../protocol/outcome.ts'
import type { SignatureState } from '../protocol/signatures.ts'

/** What is known about the card of a response. */
interface CardRecord {
  /** SHA-256 of the card as the agent wrote it, in hex. */
  readonly digest: string
  readonly signature: SignatureState
  /** Addresses that clients do not get. */
  readonly dropped: readonly string[]
}

export class A2aRecord implements BackendRecord {
  readonly protocol = 'a2a'
  readonly request: A2aRequest
  outcome: A2aOutcome = {}
  card: CardRecord | undefined

  constructor(request: A2aRequest) {
    this.request = request
  }

  eachField(visit: Parameters<BackendRecord['eachField']>[0]): void {
    const { request, outcome, card } = this
    visit('a2a.method', request.method, !request.isKnown)
    visit('a2a.binding', request.binding, false)
    visit('a2a.version', request.version, false)
    visit('a2a.task.id', outcome.taskId ?? request.taskId, true)
    visit('a2a.context.id', outcome.contextId ?? request.contextId, true)
    visit('a2a.task.state', outcome.state, false)
    visit('a2a.result.kind', outcome.kind, false)
    visit('a2a.error.code', outcome.errorCode, false)
    visit('a2a.card.digest', card?.digest, false)
    visit('a2a.card.signature', card?.signature, false)
    visit('a2a.card.dropped', card && (card.dropped.join(' ') || undefined), true)
  }
}

/** Index from which labels are copied from the labels of the request: the labels of listener and route. */
const routeLabelsAt = 5

export class A2aTelemetry implements BackendTelemetry {
  readonly #requests: TimedCounters
  readonly #labels: Label[] = []

  /** `labelTexts` converts the labels of a request to texts. */
  constructor(labelTexts: (labels: readonly Label[]) => readonly string[]) {
    this.#requests = new TimedCounters([], labelTexts)
  }

  count(
    record: BackendRecord,
    _exchange: ServerExchange,
    { backend, status }: AccessRecord,
    request: readonly Label[],
  ): void {
    if (!(record instanceof A2aRecord)) return
    const { isKnown, method, binding } = record.request
    const isError = status === 0 || status >= 400 || record.outcome.errorCode !== undefined
    const labels = this.#labels
    labels[0] = backend ?? ''
    labels[1] = isKnown ? method : otherValues
    labels[2] = binding
    labels[3] = record.outcome.state ?? ''
    labels[4] = isError ? 'error' : 'ok'
    for (let at = routeLabelsAt; at < request.length; at++) labels[at] = request[at] ?? ''
    this.#requests.record(labels, 0, 0)
  }

  snapshot(): MetricsSnapshot {
    return { a2a_requests_total: this.#requests.counts() }
  }
}
