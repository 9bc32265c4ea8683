/** Tries the budgets that a candidate adds or changes on the recorded requests. */
import { budgetAmount } from '../../../control/ledger/balances.ts'
import { endOfWindow, slicesAt } from '../../../control/ledger/windows.ts'
import { canonicalJson } from '../../../ground/base/canonical.ts'
import type { BudgetConfig } from '../../../ground/model/budgets.ts'
import type { PolicyTarget } from '../../../ground/model/resources.ts'
import type { RecordedDecision } from '../../../past/decisions/record.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { BudgetTrial, type TrialBudget } from '../../../past/spend/budget-trial.ts'
import type { RecordSource } from './record-source.ts'
import type { States } from './state.ts'

/** Amounts are decimals as text, in the unit of the budget. */
interface RefusedValue {
  readonly value: string
  readonly limit: string
  readonly requests: number
  readonly refused: number
  readonly firstRefusal?: string
  readonly admittedAmount: string
  readonly refusedAmount: string
}

/** What a budget would have done. */
export interface BudgetRefusals {
  /** `namespace/name`. */
  readonly budget: string
  readonly unit: string
  readonly requests: number
  readonly refused: number
  /** The values, most refusals first. */
  readonly values: readonly RefusedValue[]
  /** What the records cannot show. */
  readonly limits: readonly string[]
}

/** Tells whether a record is in the range that is tried. */
export type InRange = (decision: RecordedDecision) => boolean

/** Reads the records once, if the candidate adds or changes a budget. */
export function budgetRefusals(
  states: States,
  source: RecordSource,
  isIn: InRange,
): BudgetRefusals[] {
  const before = budgetsOf(states.present)
  const changed = [...budgetsOf(states.fold)].flatMap(([id, budget]) => {
    const known = before.get(id)
    return known !== undefined && textOf(known) === textOf(budget) ? [] : [budget]
  })
  if (changed.length === 0) return []
  const windows = { end: endOfWindow, slices: slicesAt }
  const dimensions = dimensionsOf(states.present)
  const trials = changed.map((budget) => new BudgetTrial(budget, windows, dimensions))
  const sample = new Sample()
  for (const result of source.read()) {
    if (!('decision' in result) || !isIn(result.decision)) continue
    sample.add(result.decision)
    for (const trial of trials) trial.add(result.decision)
  }
  return trials.map((trial) => refusalsOf(trial, sample))
}

/** The budgets of a state, by id. */
function budgetsOf(fold: Fold): Map<string, TrialBudget> {
  const found = new Map<string, { config: BudgetConfig; targets: PolicyTarget[] }>()
  for (const { resource } of fold.resources()) {
    if (resource.type !== 'policy' || resource.field !== 'budgets') continue
    const config = JSON.parse(resource.config) as BudgetConfig | null
    if (config === null || config.onExceeded === 'Audit') continue
    const known = found.get(config.id) ?? { config, targets: [] }
    known.targets.push(resource.target)
    found.set(config.id, known)
  }
  return found
}

const textOf = ({ config, targets }: TrialBudget): string =>
  canonicalJson({ ...config, generation: 0, targets } as never)

interface IdentityConfig {
  readonly dimensions: readonly { readonly name: string; readonly expression: string }[]
}

/** The dimensions with which requests were recorded, by their expressions. */
function dimensionsOf(fold: Fold): Map<string, string> {
  const found = new Map<string, string>()
  for (const { resource } of fold.resources()) {
    if (resource.type !== 'policy' || resource.field !== 'identity') continue
    const config = JSON.parse(resource.config) as IdentityConfig | null
    for (const { name, expression } of config?.dimensions ?? []) found.set(expression, name)
  }
  return found
}

/** Which part of the traffic was recorded. */
class Sample {
  readonly settings = new Set<string>()
  first: string | undefined

  add({ setting = 'errors', time }: RecordedDecision): void {
    if (setting !== 'all') this.settings.add(setting)
    if (this.first === undefined || time < this.first) this.first = time
  }
}

function refusalsOf(trial: BudgetTrial, { settings, first }: Sample): BudgetRefusals {
  const { name, unit, unpricedAmount } = trial.budget.config
  const amount = (of: bigint) => budgetAmount(unit, of)
  const values = trial.values()
  const [requests, refused] = [
    values.reduce((sum, one) => sum + one.requests, 0),
    values.reduce((sum, one) => sum + one.refused, 0),
  ]
  const limits = [
    ...(settings.size > 0
      ? [
          `only a part of the traffic was recorded (--record ${[...settings].join(', ')}), so more would be refused`,
        ]
      : []),
    ...[...trial.undecided].map(
      ([reason, count]) => `${count} requests are not counted: ${reason}`,
    ),
    ...(trial.unpriced > 0 && unpricedAmount === undefined
      ? [`${trial.unpriced} requests have no known cost, and would be refused with 403`]
      : []),
    ...(trial.unserved > 0
      ? [`${trial.unserved} requests had failed or were refused, so they cost nothing`]
      : []),
    ...(first === undefined
      ? ['there are no records']
      : [`what was spent before ${first} is unknown, so the first window may lack some`]),
    'a gateway reserves the highest cost of a request in advance, so it may refuse earlier',
  ]
  return {
    budget: name,
    unit,
    requests,
    refused,
    values: values.map(({ firstRefusal, ...one }) => ({
      ...one,
      ...(firstRefusal !== undefined && { firstRefusal }),
      limit: amount(one.limit),
      admittedAmount: amount(one.admittedAmount),
      refusedAmount: amount(one.refusedAmount),
    })),
    limits,
  }
}

/** Maximum number of values that the text of a budget lists. */
const maxValues = 20

/** The lines of a budget: those whom it refuses, and what the records cannot show. */
export function refusalLines({
  budget,
  unit,
  requests,
  refused,
  values,
  limits,
}: BudgetRefusals): string[] {
  const refusing = values.filter((one) => one.refused > 0)
  const more = refusing.length - maxValues
  return [
    `GatewayBudget ${budget} would refuse ${refused} of ${requests} requests`,
    ...refusing.slice(0, maxValues).map((one) => {
      const who = one.value === '' ? 'all' : JSON.stringify(one.value)
      return `  ${who}: ${one.refused} of ${one.requests} from ${one.firstRefusal} on; ${one.admittedAmount} of ${one.limit} ${unit} are admitted, ${one.refusedAmount} refused`
    }),
    ...(more > 0 ? [`  … and ${more} more (-o json has all)`] : []),
    ...limits.map((text) => `  not shown: ${text}`),
  ]
}
