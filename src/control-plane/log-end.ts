/** What is told where a log that was read so far cannot be gone on with. */
import { DamagedEventError, UnknownEventTypeError } from '../../events/index.ts'
import { LogError } from '../log/index.ts'
import type { MetricsSnapshot } from '../proxy/telemetry/metric-definitions.ts'
import type { ProxyOptions } from '../proxy/workers/supervisor.ts'

/** Of an event that a newer version has written: replicas are upgraded one after the other. */
export function tooNewText({ message }: UnknownEventTypeError): string {
  return `${message}; until it is upgraded this replica serves what it had and follows no further`
}

/** Undefined where it is a bug. */
function logEndText(error: unknown): string | undefined {
  if (error instanceof UnknownEventTypeError) return tooNewText(error)
  const isOfLog = error instanceof LogError || error instanceof DamagedEventError
  if (!isOfLog) return undefined
  return `the log cannot be gone on with: ${error.message}; until it is started again this gateway serves what it had and follows no further`
}

/** A standalone gateway whose log has ended serves on; its operator and its probes are told. */
export class Halt {
  readonly #options: { onHalt(text: string): void; onFault(error: unknown): void }
  readonly #onFirst: () => void
  #reason: string | undefined

  /** `onFirst` is called once, when the log has ended. */
  constructor(
    options: { onHalt(text: string): void; onFault(error: unknown): void },
    onFirst: () => void,
  ) {
    this.#options = options
    this.#onFirst = onFirst
  }

  /** Whoever reads the log and whoever writes it meet its end: the first one counts. */
  readonly because = (error: unknown): void => {
    if (this.#reason !== undefined) return
    const text = logEndText(error)
    this.#reason = error instanceof Error ? error.message : String(error)
    if (text === undefined) this.#options.onFault(error)
    else this.#options.onHalt(text)
    this.#onFirst()
  }

  /** What the proxy tells of it in metrics, beside `others`, and in its readiness. */
  told(others: () => MetricsSnapshot): Pick<ProxyOptions, 'moreMetrics' | 'without'> {
    return {
      moreMetrics: () => {
        const isFollowed = this.#reason === undefined
        return { ...others(), log_followed: [{ labels: [], values: [isFollowed ? 1 : 0] }] }
      },
      without: () => (this.#reason === undefined ? [] : [`changes (${this.#reason})`]),
    }
  }
}
