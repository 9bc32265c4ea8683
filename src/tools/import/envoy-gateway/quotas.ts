/** Converts QuotaPolicy to GatewayBudgets of tokens. */
import { gatewayGroup, ownGroup } from '../../../ground/model/api-names.ts'
import { unitOf } from '../budgets.ts'
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { quote } from '../targets.ts'
import { isDistinct, keyOf } from './backend-traffic.ts'
import type { Backends } from './backends.ts'
import { enter } from './targets.ts'

export function convertQuotaPolicy(
  field: SourceField,
  backends: Backends,
  result: Conversion,
): void {
  const name = enter(field, result)
  const spec = field.get('spec')
  const services = spec.items('targetRefs').map((ref) => String(ref.object().name))
  for (const quota of spec.items('perModelQuotas')) {
    const model = quota.text('modelName')
    quota.get('costExpression').lose('input and output tokens count alike', 'looser')
    const rules = quota.items('rules')
    if (rules.length > 1) {
      quota.get('rules').report('stricter', 'every quota must have tokens left, not only one')
    }
    for (const service of services) {
      if (!backends.uses.some((use) => use.service === service)) {
        quota.report('protection', `no route among the files sends requests to ${service}`)
        continue
      }
      const targets = targetsOf(service, model, backends)
      if (targets === undefined) {
        quota.report(
          'protection',
          `quotas are converted only if the backend is the only one of its route rules; ${service} shares a rule`,
        )
        continue
      }
      for (const rule of rules) addBudgets(rule, name, targets, result)
    }
  }
}

/** Rules of routes whose requests a quota counts, by the condition that selects them. */
type Targets = ReadonlyMap<string | undefined, readonly Fields[]>

/** Returns undefined if a rule sends the requests to several backends, of which the budget cannot know one. */
function targetsOf(service: string, model = '', { uses }: Backends): Targets | undefined {
  const found = new Map<string | undefined, Fields[]>()
  for (const { route, rule, model: sent } of uses.filter((use) => use.service === service)) {
    const isShared = uses.some(
      (other) => other.route === route && other.rule === rule && other.service !== service,
    )
    if (isShared) return undefined
    if (model !== '' && sent !== undefined && sent !== model) continue
    const when = model === '' || sent === model ? undefined : `llm.requestModel == ${quote(model)}`
    const target = { group: gatewayGroup, kind: 'HTTPRoute', name: route, sectionName: rule }
    found.set(when, [...(found.get(when) ?? []), target])
  }
  return found
}

function addBudgets(rule: SourceField, policy: string, targets: Targets, result: Conversion): void {
  const quota = rule.get('quota')
  const duration = quota.text('duration') ?? ''
  const unit = unitOf(/^\d+$/.test(duration) ? `${duration}s` : duration)
  const selectors = rule.items('clientSelectors')
  const isForAll = selectors.every(isDistinct)
  const each = isForAll ? keyOf(selectors) : undefined
  const amount = String(quota.number('tokens') ?? 0)
  for (const selector of selectors) selector.take()
  if (unit === undefined) {
    quota.report('protection', `is renewed after ${duration}; choose a minute, an hour or a day`)
    return
  }
  if (!isForAll) {
    rule.report('protection', 'quotas for some requests need a route rule of their own')
    return
  }
  for (const [when, targetRefs] of targets) {
    const spec = compact({
      targetRefs,
      when,
      each,
      limit: { unit: 'Tokens', amount },
      window: { type: 'Rolling', unit },
      onExceeded: rule.flag('shadowMode') === true ? 'Audit' : undefined,
      unpriced: 'CountAs',
      unpricedAmount: '0',
    })
    const name = result.newName('GatewayBudget', policy, rule)
    result.create(`${ownGroup}/v1alpha1`, 'GatewayBudget', name, { spec }, rule)
  }
}
