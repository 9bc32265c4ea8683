/** GatewayBudget: derives one resource for proxies per target. If it cannot be applied, its targets are closed. */
import { compileCel } from '../../../engines/cel/index.ts'
import { readUsd } from '../../../engines/messages/cost/money.ts'
import { findPolicy } from '../../../gateway/policies/registry.ts'
import { canonicalJson } from '../../../ground/base/canonical.ts'
import type { BudgetConfig, SoftLimit } from '../../../ground/model/budgets.ts'
import { withPolicyKind } from '../../../ground/model/policy-kind.ts'
import type { GatewayBudgetSpec } from '../../api/gateway-budget.ts'
import { conditionFalse } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import { type ObjectState, problemsText } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { policyResource } from './compile-policy.ts'
import { expressionFindings } from './expressions.ts'
import type { Finding } from './finding.ts'
import { acceptedCondition, type PolicyView } from './policy-status.ts'
import {
  groupOfTarget,
  type ResolvedTarget,
  resolveTargets,
  sectionProblem,
} from './policy-targets.ts'
import { calledAddress, referencesFrom } from './referenced-objects.ts'

const field = { section: 'traffic', field: 'budgets', phase: 'PostRouting' } as const

export const budgetStage: Stage = {
  name: 'budget',
  kinds: ['GatewayBudget'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedBudget(self, read)
    const spec = specOf<'GatewayBudget'>(self.object)
    const targets = resolveTargets(spec, self.ref.namespace, read)
    const problems = [...expressionFindings('GatewayBudget', 'spec', spec), ...unitFindings(spec)]
    const misplaced = targets.flatMap(({ target }): Finding[] => {
      const message = sectionProblem('traffic', target)
      return message === undefined ? [] : [{ severity: 'closed', message }]
    })
    const { softLimits, unreachable } = softLimitsOf(self, spec, read)
    const findings = [...problems, ...misplaced, ...unreachable]
    const accepted = acceptedCondition(problems.length === 0, findings, self.generation)
    const closed = problems.map(({ message }) => message).join('; ')
    const usable = targets.filter(({ target }) => sectionProblem('traffic', target) === undefined)
    const config = canonicalJson({
      ...configOf(self, spec),
      ...(softLimits.length > 0 && { softLimits }),
    })
    return outcome(self, config, closed === '' ? undefined : closed, usable, { accepted, targets })
  },
}

/** Calls of tools have no tokens, and no known cost. */
function unitFindings({ limit, when, each }: GatewayBudgetSpec): Finding[] {
  if (limit.unit === 'Requests') return []
  const readsCalls = [when, each].some((source) => source !== undefined && readsTools(source))
  const message = `spec.limit.unit: a budget that reads mcp counts calls of tools: use Requests instead of ${limit.unit}`
  return readsCalls ? [{ severity: 'closed', message }] : []
}

function readsTools(source: string): boolean {
  const compiled = compileCel(source)
  return compiled.ok && compiled.value.variables.includes('mcp')
}

function configOf({ ref, uid, generation }: ObjectState, spec: GatewayBudgetSpec): BudgetConfig {
  const { limit, overrides = [], window, onExceeded = 'Block' } = spec
  const { when, each, unpricedAmount, failOpenAmount } = spec
  // The schema has checked the amounts.
  const amount = (text: string) =>
    limit.unit === 'USD' ? `${readUsd(text) ?? 0n}` : `${BigInt(text)}`
  return {
    id: uid,
    generation,
    name: `${ref.namespace}/${ref.name}`,
    unit: limit.unit,
    amount: amount(limit.amount),
    overrides: Object.fromEntries(overrides.map((one) => [one.value, amount(one.amount)])),
    window: {
      type: window.type ?? 'Calendar',
      unit: window.unit,
      timeZone: window.type === 'Rolling' ? 'UTC' : (window.timeZone ?? 'UTC'),
    },
    onExceeded,
    ...(when !== undefined && { when }),
    ...(each !== undefined && { each }),
    ...(unpricedAmount !== undefined && { unpricedAmount: amount(unpricedAmount) }),
    ...(failOpenAmount !== undefined && { failOpenAmount: amount(failOpenAmount) }),
  }
}

/** Compiles the soft limits. One whose webhook cannot be called still warns in all other ways. */
function softLimitsOf({ ref }: ObjectState, spec: GatewayBudgetSpec, read: Reader) {
  const unreachable: Finding[] = []
  const references = referencesFrom(ref.namespace, read, ref.kind)
  const softLimits = (spec.softLimits ?? []).map((limit, index): SoftLimit => {
    const { percent, responseHeader, webhook } = limit
    const called = webhook && calledAddress(references.backend(webhook.backendRef), read)
    if (typeof called === 'string') {
      const path = `spec.softLimits[${index}].webhook.backendRef`
      unreachable.push({ severity: 'ineffective', message: `${path}: ${called}` })
    }
    return {
      percent,
      ...(responseHeader !== undefined && { header: responseHeader.toLowerCase() }),
      ...(typeof called === 'object' && { webhook: { ...called, path: webhook?.path ?? '/' } }),
    }
  })
  return { softLimits: softLimits.sort((a, b) => a.percent - b.percent), unreachable }
}

function outcome(
  self: ObjectState,
  config: string,
  unenforceable: string | undefined,
  usable: readonly ResolvedTarget[],
  view: Omit<PolicyView, 'claims'>,
): Derived {
  const configVersion = findPolicy(field.section, field.field)?.configVersion ?? 0
  const compiled = {
    config: unenforceable === undefined ? config : 'null',
    configVersion,
    unenforceable,
  }
  const resources = usable
    .filter(({ exists }) => exists)
    .map(({ target }) => {
      const resource = policyResource(
        { owner: self.ref, age: self.age, ...field },
        compiled,
        target,
      )
      return withPolicyKind(resource, 'GatewayBudget')
    })
  const value: PolicyView = { ...view, claims: [] }
  return { resources, value }
}

/** A budget that never had a valid version: requests to its targets, as far as these can be read, are refused. */
function refusedBudget(self: ObjectState, read: Reader): Derived {
  const { refused } = self
  if (refused === undefined) return {}
  const message = problemsText(refused)
  const accepted = conditionFalse('Accepted', 'Invalid', refused.generation, message)
  const targetRefs = refused.targets.flatMap(({ name, matchLabels: _, ...rest }) =>
    name === undefined ? [] : [{ ...rest, group: groupOfTarget(rest.kind), name }],
  )
  const targets = resolveTargets({ targetRefs }, self.ref.namespace, read)
  const why = `GatewayBudget ${self.ref.namespace}/${self.ref.name} is invalid: ${message}`
  return outcome(self, 'null', why, targets, { accepted, targets })
}
