/**
 * What stands inside a route rule and works as a policy of that rule: its CORS and ExternalAuth
 * filters, its retry.
 */
import type { HttpRuleSpec } from '../../api/gateway-api/http-route.ts'
import type { PolicyResource } from '../../model/resources.ts'
import { inlineRule } from '../../policies/merge.ts'
import type { Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { compileField, type PolicyField, policyResource } from './compile-policy.ts'

export interface RulePolicies {
  readonly resources: readonly PolicyResource[]
  /** What has no effect, with its place. */
  readonly notes: readonly string[]
}

/**
 * A CORS filter must answer a preflight before any authentication, which filters come after; as the
 * most specific policy it runs at the place of that policy, and replaces those of wider targets.
 * An ExternalAuth filter and `retry` of a rule do the same.
 */
export function rulePolicies(
  self: ObjectState,
  rules: readonly Pick<HttpRuleSpec, 'filters'>[],
  read: Reader,
): RulePolicies {
  const resources: PolicyResource[] = []
  const notes: string[] = []
  rules.forEach((rule, ruleIndex) => {
    for (const [name, { path, spec }] of Object.entries(insideOf(rule))) {
      const field: PolicyField = {
        owner: self.ref,
        age: self.age,
        section: 'traffic',
        field: name,
        phase: 'PostRouting',
        path: `spec.rules[${ruleIndex}].${path}`,
        spec,
      }
      const compiled = compileField(field, read)
      notes.push(...compiled.findings.map(({ message }) => message))
      resources.push(policyResource(field, compiled, inlineRule(self.ref, ruleIndex)))
    }
  })
  return { resources, notes }
}

/** The policies that a rule holds, by field, with their places in the rule. */
function insideOf({ filters = [], retry }: HttpRuleSpec): Record<string, Inside> {
  const inside: Record<string, Inside> = {}
  filters.forEach(({ type, cors, externalAuth }, at) => {
    if (type === 'CORS') inside.cors ??= { path: `filters[${at}].cors`, spec: cors ?? {} }
    if (type === 'ExternalAuth') {
      inside.extAuth ??= { path: `filters[${at}].externalAuth`, spec: externalAuth }
    }
  })
  if (retry !== undefined) inside.retry = { path: 'retry', spec: retry }
  return inside
}

interface Inside {
  readonly path: string
  readonly spec: unknown
}
