/** Converts API keys of the standalone agentgateway, with their models and budgets. */
import { ownGroup } from '../../../ground/model/api-names.ts'
import { decimalOf } from '../../catalog/decimal.ts'
import { budgetFields, differsInSpend, unitOfSeconds } from '../budgets.ts'
import { compact } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { addSecret, toRoute } from '../targets.ts'
import { modeOf } from './standalone-login.ts'
import { type RouteScene, secondsOf } from './standalone-scene.ts'

export function apiKey(field: SourceField, scene: RouteScene): void {
  const { plan, name, result } = scene
  const secret = result.nameOf('Secret', `${name}-api-keys`)
  const entries = field.items('keys').map((item, index) => {
    const id = `key-${index + 1}`
    const key = item.get('key')
    if (key.isSet) key.report('secret', `the key is now in Secret ${secret}`)
    const metadata = item.take('metadata')
    for (const budget of item.items('budgets')) addBudget(budget, id, scene)
    const entry = {
      key: key.text(),
      keyHash: item.text('keyHash'),
      metadata,
      allowedModels: item.list('allowedModels'),
    }
    return [id, JSON.stringify(compact(entry))] as const
  })
  const secretRef = addSecret(result, secret, Object.fromEntries(entries), field)
  const location = field.take('location')
  plan.traffic.apiKeyAuthentication = compact({ ...modeOf(field), location, secretRef })
}

/** Adds a budget of a key. Its windows begin with the epoch, as units of the calendar do in UTC. */
function addBudget(field: SourceField, id: string, { name, result }: RouteScene): void {
  const [limit, label] = [field.get('limit'), field.text('name') ?? 'budget']
  const unit = limit.text('unit')
  const amount = decimalOf(limit.text('amount'))
  const window = unitOfSeconds(secondsOf(field.at('window', 'rolling').text() ?? ''))
  const onExceeded = field.text('onBudgetExceeded')
  if (amount === undefined || window === undefined || (unit !== 'USD' && unit !== 'Tokens')) {
    field.report('protection', 'is no amount of USD or Tokens for 1m, 1h, 24h, 168h or 720h')
    return
  }
  field.report('changed', differsInSpend)
  if (window === 'Week' || window === 'Month') {
    field.get('window').report('changed', `is renewed when a ${window.toLowerCase()} begins`)
  }
  const spec = compact({
    targetRefs: [toRoute(name)],
    when: `apiKey != null && apiKey.id == ${JSON.stringify(id)}`,
    ...budgetFields({ amount, unit: window }, unit),
    onExceeded,
  })
  const budgetName = result.nameOf('GatewayBudget', `${name}-${id}-${label}`)
  result.create(`${ownGroup}/v1alpha1`, 'GatewayBudget', budgetName, { spec }, field)
}
