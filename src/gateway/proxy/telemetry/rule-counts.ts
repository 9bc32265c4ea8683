/** Counts of what guards have decided, by policy and rule. */
import type { Step } from '../../policies/define.ts'
import { originOf, policyText } from '../config/policies.ts'
import type { MetricsSnapshot } from './metric-definitions.ts'

/** Maximum number of label combinations. */
const maxRules = 2_000
/** Value of all labels of the combinations beyond the limit. */
const overflow = 'overflow'

export class RuleCounts {
  readonly #counts = new Map<string, { readonly labels: readonly string[]; count: number }>()
  readonly #policies = new WeakMap<Step, string>()

  /** Adds to the count of the policies of a step and the other labels. */
  add(step: Step | undefined, others: readonly string[], amount = 1): void {
    const labels = [this.#policyOf(step), ...others]
    const isFull = this.#counts.size >= maxRules && !this.#counts.has(labels.join('\n'))
    const counted = isFull ? labels.map(() => overflow) : labels
    const key = counted.join('\n')
    const known = this.#counts.get(key)
    if (known === undefined) this.#counts.set(key, { labels: counted, count: amount })
    else known.count += amount
  }

  /** The policies that a step was made from. */
  #policyOf(step: Step | undefined): string {
    if (step === undefined) return 'unknown'
    const known = this.#policies.get(step)
    if (known !== undefined) return known
    const text = (originOf(step)?.policies ?? []).map(policyText).join(', ') || 'unknown'
    this.#policies.set(step, text)
    return text
  }

  series(): MetricsSnapshot['mcp_guard_checks_total'] {
    return [...this.#counts.values()].map(({ labels, count }) => ({ labels, values: [count] }))
  }
}
