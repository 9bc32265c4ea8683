/**
 * Readiness of a replica. It is ready if the kinds of the cluster were listed, the log is open and read to
 * its end, the configuration was published, and proxies can connect.
 */
import { type Respond, type Routes, sendText } from '../../../engines/local-server/server.ts'

const parts = ['kubernetes', 'log', 'listing', 'configuration', 'xds'] as const
type HealthPart = (typeof parts)[number]

export class ControllerHealth {
  readonly #problems = new Map<HealthPart, () => string | undefined>(
    parts.map((part) => [part, () => 'not started']),
  )
  readonly #onReady: (() => void) | undefined
  #wasReady = false

  /** `onReady` is called each time the last problem is resolved. */
  constructor(onReady?: () => void) {
    this.#onReady = onReady
  }

  /** Sets the problem of a part, or undefined if it is ready. A function is called at each probe. */
  set(part: HealthPart, problem: string | undefined | (() => string | undefined)): void {
    this.#problems.set(part, typeof problem === 'function' ? problem : () => problem)
    const { isReady } = this
    if (!this.#wasReady && isReady) this.#onReady?.()
    this.#wasReady = isReady
  }

  /** Marks all parts as not ready. */
  reset(reason: string): void {
    for (const part of parts) this.#problems.set(part, () => reason)
    this.#wasReady = false
  }

  get isReady(): boolean {
    return this.problems().length === 0
  }

  problems(): string[] {
    return parts.flatMap((part) => {
      const problem = this.#problems.get(part)?.()
      return problem === undefined ? [] : [`${part}: ${problem}`]
    })
  }

  /** Routes for probes. */
  routes(): Routes {
    const alive: Respond = (_, response) => sendText(response, 200, 'alive\n')
    const ready: Respond = (_, response) => {
      const problems = this.problems()
      if (problems.length === 0) sendText(response, 200, 'ready\n')
      else sendText(response, 503, `not ready\n${problems.join('\n')}\n`)
    }
    return { '/healthz': { GET: alive }, '/livez': { GET: alive }, '/readyz': { GET: ready } }
  }
}
