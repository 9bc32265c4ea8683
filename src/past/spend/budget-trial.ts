/** Tries a budget on recorded requests: whom it would have refused. */
import {
  activationOf,
  type CelResult,
  compileCel,
  errorText,
  isCelError,
} from '../../engines/cel/index.ts'
import { inputWithCache } from '../../engines/messages/chat.ts'
import { textOfResult } from '../../gateway/variables/index.ts'
import { type BudgetConfig, limitOf } from '../../ground/model/budgets.ts'
import { objectText } from '../../ground/model/names.ts'
import type { PolicyTarget } from '../../ground/model/resources.ts'
import type { RecordedDecision } from '../decisions/record.ts'
import { spendOf } from './entry.ts'

export interface TrialBudget {
  readonly config: BudgetConfig
  readonly targets: readonly PolicyTarget[]
}

/** Finds windows as the ledger does; both functions take a time in milliseconds of the epoch. */
interface TrialWindows {
  /** When the calendar window that contains a time ends. */
  end(window: BudgetConfig['window'], time: number): number | undefined
  /** The slice of a rolling window, and the first slice that still counts. */
  slices(window: BudgetConfig['window'], time: number): { slice: number; firstSlice: number }
}

/** What a budget would have done to the requests with one value. Amounts are in the unit of the budget. */
interface TrialValue {
  readonly value: string
  readonly limit: bigint
  requests: number
  refused: number
  /** RFC 3339; undefined if none is refused. */
  firstRefusal: string | undefined
  admittedAmount: bigint
  refusedAmount: bigint
}

interface Account extends TrialValue {
  /** What is spent, by the end of the window, or by the slice of a rolling one. */
  readonly spent: Map<number, bigint>
}

/** Variables of which records have the values, or some of them. */
const recordedVariables: readonly string[] = ['request', 'identity', 'llm']

/** A value that the records do not have. */
class Unrecorded extends Error {}

export class BudgetTrial {
  readonly budget: TrialBudget
  readonly #windows: TrialWindows
  /** Dimensions of records, by the expressions whose values they have. */
  readonly #dimensions: ReadonlyMap<string, string>
  readonly #accounts = new Map<string, Account>()
  /** Requests that cannot be decided, by the reason. */
  readonly undecided = new Map<string, number>()
  /** Requests that were refused for their unknown cost. */
  unpriced = 0
  /** Requests that had failed or were refused when they were recorded, so that they cost nothing. */
  unserved = 0

  constructor(
    budget: TrialBudget,
    windows: TrialWindows,
    dimensions: ReadonlyMap<string, string> = new Map(),
  ) {
    this.budget = budget
    this.#windows = windows
    this.#dimensions = dimensions
  }

  /** Takes the next request, in the order in which requests ended. */
  add(decision: RecordedDecision): void {
    if (!this.budget.targets.some((target) => isAt(target, decision))) return
    try {
      const { when, each } = this.budget.config
      if (when !== undefined && !this.#applies(when, decision)) return
      this.#charge(each === undefined ? '' : this.#valueOf(each, decision), decision)
    } catch (error) {
      if (!(error instanceof Unrecorded)) throw error
      this.undecided.set(error.message, (this.undecided.get(error.message) ?? 0) + 1)
    }
  }

  /** The values, most refusals first. */
  values(): TrialValue[] {
    return [...this.#accounts.values()]
      .map(({ spent: _, ...value }) => value)
      .sort((a, b) => b.refused - a.refused || b.requests - a.requests)
  }

  /** As in the gateway: a condition that fails applies, unless what it reads is missing. */
  #applies(when: string, decision: RecordedDecision): boolean {
    const result = this.#evaluate(when, decision)
    return isCelError(result) ? result.kind !== 'missing' : result === true
  }

  #valueOf(each: string, decision: RecordedDecision): string {
    const result = this.#evaluate(each, decision)
    if (!isCelError(result)) return textOfResult(result) ?? ''
    if (result.kind === 'missing') return ''
    throw new Unrecorded(`${each} fails: ${errorText(result)}`)
  }

  /** @throws Unrecorded if the record lacks what the expression reads */
  #evaluate(source: string, decision: RecordedDecision): CelResult {
    const dimension = this.#dimensions.get(source)
    if (dimension !== undefined) return decision.details[`identity.${dimension}`] ?? null
    const compiled = compileCel(source)
    if (!compiled.ok) throw new Unrecorded(`${source} is not valid`)
    const unknown = compiled.value.variables.find((name) => !recordedVariables.includes(name))
    if (unknown !== undefined) {
      throw new Unrecorded(`records have no ${unknown}; a dimension of identity with ${source} has`)
    }
    if (/\brequest\.body\b/.test(source)) throw new Unrecorded('records have no bodies')
    const hidden = decision.request.headers.find(
      ({ name, value }) => value === undefined && source.includes(`"${name}"`),
    )
    if (hidden !== undefined) throw new Unrecorded(`records have no value of ${hidden.name}`)
    return compiled.value.evaluate(activationOf(variablesOf(decision)))
  }

  #charge(value: string, decision: RecordedDecision): void {
    if (!wasServed(decision)) {
      this.unserved++
      return
    }
    const amount = this.#amountOf(decision)
    if (amount === undefined) {
      this.unpriced++
      return
    }
    const account = this.#account(value)
    const { window } = this.budget.config
    const time = Date.parse(decision.time)
    const { slice, firstSlice } = this.#windows.slices(window, time)
    const isRolling = window.type === 'Rolling'
    const place = isRolling ? slice : (this.#windows.end(window, time) ?? 0)
    let spent = 0n
    for (const [at, charged] of account.spent) {
      if (isRolling ? at >= firstSlice : at === place) spent += charged
      else if (at < place) account.spent.delete(at)
    }
    account.requests++
    if (spent + amount > account.limit) {
      account.refused++
      account.firstRefusal ??= decision.time
      account.refusedAmount += amount
    } else {
      account.admittedAmount += amount
      account.spent.set(place, (account.spent.get(place) ?? 0n) + amount)
    }
  }

  #account(value: string): Account {
    const known = this.#accounts.get(value)
    if (known !== undefined) return known
    const account: Account = {
      value,
      limit: limitOf(this.budget.config, value),
      requests: 0,
      refused: 0,
      firstRefusal: undefined,
      admittedAmount: 0n,
      refusedAmount: 0n,
      spent: new Map(),
    }
    this.#accounts.set(value, account)
    return account
  }

  /** What the request is charged; undefined if it is refused, because that is not known. */
  #amountOf(decision: RecordedDecision): bigint | undefined {
    const { unit, unpricedAmount } = this.budget.config
    if (unit === 'Requests') return 1n
    const entry = spendOf(decision)
    // Budgets do not charge results of batches.
    if (entry?.batch !== undefined) return 0n
    const tokens = entry && BigInt(inputWithCache(entry.usage) + entry.usage.output)
    const amount = unit === 'Tokens' ? tokens : entry?.cost
    return amount ?? (unpricedAmount === undefined ? undefined : BigInt(unpricedAmount))
  }
}

function isAt(target: PolicyTarget, { route }: RecordedDecision): boolean {
  const { kind, namespace, name, section } = target
  if (kind === 'Gateway') {
    const isOwn = route.gateway === `${namespace}/${name}`
    return isOwn && (section === undefined || route.listener === section)
  }
  return route.route === objectText(target) && (section === undefined || route.ruleName === section)
}

/** Whether budgets of requests count the request. */
const wasServed = ({ response, steps }: RecordedDecision): boolean =>
  response.error === undefined &&
  response.status < 500 &&
  !(response.status >= 400 && steps.some(({ verdict }) => verdict === 'answer'))

function variablesOf({ request, details }: RecordedDecision): Record<string, CelResult> {
  const { method, host, path, scheme, headers } = request
  const named = (prefix: string) =>
    Object.entries(details).flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), `${value}`] as const] : [],
    )
  const known = headers.flatMap(({ name, value }) =>
    value === undefined ? [] : [[name, value] as const],
  )
  const llm = {
    requestModel: details['gen_ai.request.model'],
    responseModel: details['gen_ai.response.model'],
    provider: details['gen_ai.provider.name'],
  }
  return {
    request: { method, host, path, scheme, headers: Object.fromEntries(known) },
    identity: Object.fromEntries(named('identity.')),
    llm: Object.fromEntries(
      Object.entries(llm).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
  }
}
