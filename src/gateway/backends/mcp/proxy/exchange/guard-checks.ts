/** What guards and processors have decided about the messages of one request, for metrics. */
import type { Step } from '../../../../policies/define.ts'
import type { GuardAction } from '../../../ai/guards/guard-call.ts'

export interface McpGuardCheck {
  readonly phase: 'Request' | 'Response'
  /** Type of the guard, or `processor`. */
  readonly guard: string
  /** Position in the list of the policy. */
  readonly rule: number
  readonly action: GuardAction
}

/** Equal decisions have one entry, because the messages of a long stream are many. */
export class GuardChecks {
  #steps: Map<Step | undefined, Map<string, CountedCheck>> | undefined

  add(step: Step | undefined, { phase, rule, guard, action }: McpGuardCheck): void {
    this.#steps ??= new Map()
    let counts = this.#steps.get(step)
    if (counts === undefined) {
      counts = new Map()
      this.#steps.set(step, counts)
    }
    const labels = [phase, `${rule}`, guard, action]
    const key = labels.join(' ')
    const known = counts.get(key)
    if (known === undefined) counts.set(key, { labels, count: 1 })
    else known.count++
  }

  /** Visits each decision with its labels: phase, rule, guard and action. */
  each(visit: (step: Step | undefined, check: CountedCheck) => void): void {
    if (this.#steps === undefined) return
    for (const [step, counts] of this.#steps) {
      for (const check of counts.values()) visit(step, check)
    }
  }
}

interface CountedCheck {
  readonly labels: readonly string[]
  count: number
}
