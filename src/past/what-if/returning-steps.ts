/** Finds requests that would be refused only because the change restores a protection that was in force before. */
import type { RecordedDecision } from '../decisions/record.ts'
import type { ComparedRequest } from './recorded-requests.ts'

interface RefusedRequests {
  readonly step: string
  /** Configuration of the step. */
  readonly config: string
  records: number
}

export class ReturningSteps {
  /** The time of the newest record with a configuration of a step. */
  readonly #recorded = new Map<string, string>()
  /** By Gateway. */
  readonly #refused = new Map<string, Map<string, RefusedRequests>>()

  add(gateway: string, { steps, time }: RecordedDecision, { refusedBy }: ComparedRequest): void {
    for (const { config } of steps) {
      if ((this.#recorded.get(config) ?? '') < time) this.#recorded.set(config, time)
    }
    if (refusedBy === undefined) return
    const { step, config } = refusedBy
    const refused = this.#refused.get(gateway) ?? new Map<string, RefusedRequests>()
    this.#refused.set(gateway, refused)
    const counted = refused.get(config) ?? { step, config, records: 0 }
    refused.set(config, counted)
    counted.records++
  }

  /** The end of a sentence about refused requests; empty if no protection returns. */
  text(gateway: string): string {
    const refused = [...(this.#refused.get(gateway)?.values() ?? [])]
    return refused
      .flatMap(({ step, config, records }) => {
        const until = this.#recorded.get(config)
        return until === undefined
          ? []
          : `. The change restores ${step}, which was in force until ${until} and would refuse ${records} of them: approve the change if these requests were sent because ${step} was missing`
      })
      .join('')
  }
}
