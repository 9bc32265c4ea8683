/**
 * Compiles parts of a route rule to policies of that rule: its CORS and ExternalAuth filters, and its
 * retry.
 */

import { inlineRule } from '../../../gateway/policies/merge.ts'
import type { PolicyResource } from '../../../ground/model/resources.ts'
import type { HttpRuleSpec } from '../../api/gateway-api/http-route.ts'
import type { Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { compileField, type PolicyField, policyResource } from './compile-policy.ts'

export interface RulePolicies {
  readonly resources: readonly PolicyResource[]
  /** Messages about settings that have no effect, with their paths. */
  readonly notes: readonly string[]
}

/**
 * A CORS filter must answer preflights before any authentication, but filters run later. It is compiled
 * to the most specific policy instead: it runs in the position of the CORS policy, and overrides those
 * of less specific targets. ExternalAuth filters and `retry` are compiled in the same way.
 */
export function rulePolicies(
  self: ObjectState,
  rules: readonly Pick<HttpRuleSpec, 'filters'>[],
  read: Reader,
): RulePolicies {
  const resources: PolicyResource[] = []
  const notes: string[] = []
  rules.forEach((rule, ruleIndex) => {
    if (!hasPolicies(rule)) return
    for (const [name, { path, spec }] of Object.entries(policiesInRule(rule))) {
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

function hasPolicies({ filters = [], retry }: HttpRuleSpec): boolean {
  return (
    retry !== undefined || filters.some(({ type }) => type === 'CORS' || type === 'ExternalAuth')
  )
}

/** The parts of a rule that are policies, by policy field, with their paths in the rule. */
function policiesInRule({ filters = [], retry }: HttpRuleSpec): Record<string, RulePolicySource> {
  const inside: Record<string, RulePolicySource> = {}
  filters.forEach(({ type, cors, externalAuth }, at) => {
    if (type === 'CORS') inside.cors ??= { path: `filters[${at}].cors`, spec: cors ?? {} }
    if (type === 'ExternalAuth') {
      inside.extAuth ??= { path: `filters[${at}].externalAuth`, spec: externalAuth }
    }
  })
  if (retry !== undefined) inside.retry = { path: 'retry', spec: retry }
  return inside
}

interface RulePolicySource {
  readonly path: string
  readonly spec: unknown
}
