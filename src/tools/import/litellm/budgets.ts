/** Converts the budgets of the whole proxy and of teams. */
import { ownGroup } from '../../../ground/model/api-names.ts'
import { budgetFields, budgetOf, differsInSpend } from '../budgets.ts'
import type { Conversion, Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { quote, toGateway } from '../targets.ts'

export function addBudgets(root: SourceField, result: Conversion): void {
  const settings = root.get('litellm_settings')
  addBudget(settings, 'proxy', {}, result)
  const defaults = settings.get('default_team_params')
  addTeam(defaults, 'teams', { when: 'has(apiKey.team)', each: 'apiKey.team' }, result)
  const named = [...root.items('default_team_settings'), ...settings.items('default_team_settings')]
  for (const team of named) {
    const id = team.text('team_id') ?? ''
    const when = `has(apiKey.team) && apiKey.team == ${quote(id)}`
    addTeam(team, result.nameOf('GatewayBudget', `team-${id}`), { when }, result)
  }
}

function addTeam(team: SourceField, name: string, selection: Fields, result: Conversion): void {
  team.get('models').lose('name the models in `allowedModels` of the keys', 'protection')
  for (const limit of ['tpm_limit', 'rpm_limit', 'max_parallel_requests']) {
    team
      .get(limit)
      .lose('write a GatewayPolicy with rateLimit and `key: apiKey.team`', 'protection')
  }
  addBudget(team, name, selection, result)
}

function addBudget(
  settings: SourceField,
  name: string,
  selection: Fields,
  result: Conversion,
): void {
  const [amount, duration] = [settings.get('max_budget'), settings.get('budget_duration')]
  const budget = budgetOf(amount.text(), duration.text())
  if (!amount.isSet) return
  if (typeof budget === 'string') {
    amount.report('protection', budget)
    return
  }
  amount.report('changed', differsInSpend)
  const spec = { targetRefs: [toGateway], ...selection, ...budgetFields(budget) }
  result.create(`${ownGroup}/v1alpha1`, 'GatewayBudget', name, { spec }, settings)
}
