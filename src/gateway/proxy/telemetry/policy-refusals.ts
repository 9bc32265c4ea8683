/** Counts requests that policies refuse. */
import type { Step } from '../../policies/define.ts'
import { originOf, policyText } from '../config/policies.ts'
import type { Series } from './metric-definitions.ts'
import { type Label, timedCounters } from './timed-counters.ts'
import type { AccessRecord } from './types.ts'

/** Maximum number of label combinations. */
const maxCombinations = 2_000
const unknown = 'unknown'

interface PolicyName {
  readonly policy: string
  readonly field: string
}

export class PolicyRefusals {
  readonly #refusals = timedCounters('policy_refusals_total', undefined, maxCombinations)
  readonly #names = new WeakMap<Step, PolicyName>()
  readonly #labels: Label[] = []

  /** Counts the request if a policy has refused it. */
  count({ refusedBy, route }: AccessRecord): void {
    if (refusedBy === undefined) return
    const { policy, field } = this.#nameOf(refusedBy)
    this.#labels[0] = policy
    this.#labels[1] = field
    this.#labels[2] = route ?? unknown
    this.#refusals.record(this.#labels, 0, 0)
  }

  #nameOf(step: Step): PolicyName {
    const known = this.#names.get(step)
    if (known !== undefined) return known
    const { name, policies = [] } = originOf(step) ?? {}
    const policy = policies.map(policyText).join(', ') || unknown
    const found = { policy, field: name ?? unknown }
    this.#names.set(step, found)
    return found
  }

  series(): readonly Series[] {
    return this.#refusals.counts()
  }
}
