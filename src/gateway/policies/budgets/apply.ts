import { andThen } from '../../../ground/base/and-then.ts'
import { systemClock } from '../../../ground/base/clock.ts'
import { type BudgetHost, budgetsOf, storeBudgets } from '../../../ground/exchange/budgets.ts'
import {
  type Exchange,
  next,
  type RespondVerdict,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import { type BudgetConfig, budgetShape as shape } from '../../../ground/model/budgets.ts'
import { type BodyNeeds, bufferBodies } from '../../variables/index.ts'
import type { PolicyApply, Step } from '../define.ts'
import { LimitExpression } from '../limit-expression.ts'
import { type BoundBudget, type BoundBudgets, Budgets } from './request-budgets.ts'

const apply: PolicyApply<readonly BudgetConfig[]> = {
  shape,
  bind(configs, _callouts, _secrets, { budgets: host }) {
    if (host === undefined) return {}
    host.begin()
    const all = distinct(configs).map(boundBudget)
    const others = all.filter((one) => !isOfCalls(one))
    const isWarning = all.some(({ config }) => config.softLimits?.some(({ header }) => header))
    const step: Step = {
      onRequest: (exchange) => {
        const pending = needs && bufferBodies(exchange, needs)
        return pending === undefined
          ? begin(exchange, bound, host)
          : pending.then(() => begin(exchange, bound, host))
      },
      ...(isWarning && { onResponse: addWarnings }),
    }
    const bound = {
      step,
      early: others.filter(isEarly),
      late: others.filter((one) => !isEarly(one)),
      calls: all.filter(isOfCalls),
    }
    const needs = bodyNeeds([...bound.early, ...bound.calls])
    return step
  },
}

export default apply

function addWarnings(exchange: Exchange): void {
  const headers = exchange.response?.headers
  if (headers !== undefined) budgetsOf(exchange)?.warn(headers)
}

function begin(
  exchange: Exchange,
  bound: BoundBudgets,
  host: BudgetHost,
): Verdict | Promise<Verdict> {
  const budgets = new Budgets(bound, host, systemClock)
  storeBudgets(exchange, budgets)
  return andThen(budgets.count(exchange), verdictOf)
}

const verdictOf = (refused: RespondVerdict | undefined): Verdict => refused ?? next

/** A budget that applies at several levels counts a request once. */
const distinct = (configs: readonly BudgetConfig[]): BudgetConfig[] => [
  ...new Map(configs.map((config) => [config.id, config])).values(),
]

function boundBudget(config: BudgetConfig): BoundBudget {
  const { unpricedAmount, failOpenAmount } = config
  const when = config.when === undefined ? undefined : new LimitExpression(config.when)
  const each = config.each === undefined ? undefined : new LimitExpression(config.each)
  return {
    config,
    when,
    each,
    overdraft: failOpenAmount === undefined ? undefined : BigInt(failOpenAmount),
    unpriced: unpricedAmount === undefined ? undefined : BigInt(unpricedAmount),
  }
}

/** Only budgets of requests need no estimate. They wait for the AI backend if they read what it learns. */
const isEarly = ({ config, when, each }: BoundBudget): boolean =>
  config.unit === 'Requests' && when?.isLearned !== true && each?.isLearned !== true

const isOfCalls = ({ when, each }: BoundBudget): boolean =>
  when?.isOfCall === true || each?.isOfCall === true

function bodyNeeds(early: readonly BoundBudget[]): BodyNeeds | undefined {
  const reads = early.some(({ when, each }) => when?.readsBody === true || each?.readsBody === true)
  return reads ? { request: true, response: false } : undefined
}
