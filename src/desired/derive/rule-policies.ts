/** What stands inside a route rule and works as a policy of that rule: its CORS filter. */
import type { PolicyResource } from '../../model/resources.ts'
import { inlineRule } from '../../policies/merge.ts'
import type { Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import type { HttpRuleSpec } from '../shapes.ts'
import { compileField, type PolicyField, policyResource } from './compile-policy.ts'

export interface RulePolicies {
  readonly resources: readonly PolicyResource[]
  /** What has no effect, with its place. */
  readonly notes: readonly string[]
}

/**
 * A CORS filter must answer a preflight before any authentication, which filters come after; as the
 * most specific policy it runs at the place of that policy, and replaces those of wider targets.
 */
export function rulePolicies(
  self: ObjectState,
  rules: readonly HttpRuleSpec[],
  read: Reader,
): RulePolicies {
  const resources: PolicyResource[] = []
  const notes: string[] = []
  rules.forEach(({ filters = [] }, ruleIndex) => {
    const position = filters.findIndex(({ type }) => type === 'CORS')
    if (position < 0) return
    const field: PolicyField = {
      owner: self.ref,
      age: self.age,
      section: 'traffic',
      field: 'cors',
      phase: 'PostRouting',
      path: `spec.rules[${ruleIndex}].filters[${position}].cors`,
      spec: filters[position]?.cors ?? {},
    }
    const compiled = compileField(field, read)
    notes.push(...compiled.findings.map(({ message }) => message))
    resources.push(policyResource(field, compiled, inlineRule(self.ref, ruleIndex)))
  })
  return { resources, notes }
}
