import { defineEvent, type EventOf } from './envelope.ts'

/** Amounts are integers as text: requests, tokens, or 10⁻¹² USD. */
export interface BudgetDefinedData {
  readonly budget: string
  readonly name: string
  readonly generation: number
  readonly unit: string
  readonly amount: string
  readonly overrides: Readonly<Record<string, string>>
  readonly window: object
  readonly softLimits?: readonly number[]
}

export const budgetDefined = defineEvent<BudgetDefinedData>()({
  name: 'BudgetDefined',
  type: 'dev.sluice.budget.defined.v1',
  version: 1,
  about: 'The ledger has read a new version of a GatewayBudget.',
  fields: {
    budget: 'Uid of the object, which identifies its balances.',
    name: 'Namespace and name of the object, with a slash.',
    generation: 'Generation of the object.',
    unit: 'What is counted.',
    amount: 'Amount for each window, as the text of an integer; money in 10⁻¹² USD.',
    overrides: 'Amounts of single values.',
    window: 'Type and length of the window, and its time zone.',
    softLimits: 'Percentages of the amount that are warned about; omitted if there are none.',
  },
})

export interface BudgetOpenedData {
  readonly budget: string
  readonly window: number
  readonly endsAt?: string
}

export const budgetOpened = defineEvent<BudgetOpenedData>()({
  name: 'BudgetOpened',
  type: 'dev.sluice.budget.opened.v1',
  version: 1,
  about: 'A window of a budget has begun. Every value of the budget has its whole amount again.',
  fields: {
    budget: 'Uid of the object.',
    window: 'Number of the window, which only rises.',
    endsAt: 'Time at which the window ends; omitted for rolling windows.',
  },
})

export interface BudgetGrant {
  readonly budget: string
  readonly window: number
  /** Omitted if the grant is a share of each value that has no balance yet. */
  readonly value?: string
  readonly amount?: string
  readonly share?: number
  readonly generation?: number
}

export interface BudgetGrantedData {
  readonly holder: string
  readonly grants: readonly BudgetGrant[]
}

export const budgetGranted = defineEvent<BudgetGrantedData>()({
  name: 'BudgetGranted',
  type: 'dev.sluice.budget.granted.v1',
  version: 1,
  about:
    'The ledger has granted allowances to a proxy, which may admit requests up to that amount.',
  fields: {
    holder: 'Name of the run of the proxy.',
    grants:
      'Budget, window, value and amount of each allowance; or a share in millionths of each value without a balance, by the amounts of a generation.',
  },
})

export interface BudgetCharge {
  readonly budget: string
  readonly window: number
  readonly value: string
  readonly charged?: string
  readonly returned?: string
  readonly requests?: number
  /** The sum of the grants that the proxy had received when it had given back everything but what is reserved. */
  readonly drained?: string
}

export interface BudgetChargedData {
  readonly holder: string
  readonly sequence: number
  readonly charges: readonly BudgetCharge[]
}

export const budgetCharged = defineEvent<BudgetChargedData>()({
  name: 'BudgetCharged',
  type: 'dev.sluice.budget.charged.v1',
  version: 1,
  about:
    'A proxy has reported what requests have cost since its last report, or that it still runs.',
  fields: {
    holder: 'Name of the run of the proxy.',
    sequence: 'Number of the report; each is counted once.',
    charges:
      'Budget, window, value, amount charged, amount given back and number of requests; and, if nothing is left that could be given back, the sum of the grants that the proxy had received by then.',
  },
})

export interface BudgetRecalledData {
  readonly budget: string
  readonly window: number
  readonly value: string
}

export const budgetRecalled = defineEvent<BudgetRecalledData>()({
  name: 'BudgetRecalled',
  type: 'dev.sluice.budget.recalled.v1',
  version: 1,
  about:
    'An allowance is missing at one proxy, so every other one must give back what it does not need.',
  fields: {
    budget: 'Uid of the object.',
    window: 'Number of the window.',
    value: 'Value whose allowances are recalled.',
  },
})

export interface BudgetReleasedData {
  readonly holder: string
}

export const budgetReleased = defineEvent<BudgetReleasedData>()({
  name: 'BudgetReleased',
  type: 'dev.sluice.budget.released.v1',
  version: 1,
  about:
    'A proxy has not reported for a long time. Its allowances are free again; what it reports later is still charged.',
  fields: { holder: 'Name of the run of the proxy.' },
})

export interface BudgetAdjustedData {
  readonly budget: string
  readonly window: number
  readonly value: string
  readonly amount: string
  readonly reason: string
  readonly author?: string
}

export const budgetAdjusted = defineEvent<BudgetAdjustedData>()({
  name: 'BudgetAdjusted',
  type: 'dev.sluice.budget.adjusted.v1',
  version: 1,
  about: 'An operator has changed the amount of a value for the current window.',
  fields: {
    budget: 'Uid of the object.',
    window: 'Number of the window.',
    value: 'Value of the budget.',
    amount: 'Amount that is added; negative if it is taken away.',
    reason: 'Why, in the words of the operator.',
    author: 'Who has changed it.',
  },
})

export interface BudgetClosedData {
  readonly budget: string
  readonly window: number
  readonly value: string
}

export const budgetClosed = defineEvent<BudgetClosedData>()({
  name: 'BudgetClosed',
  type: 'dev.sluice.budget.closed.v1',
  version: 1,
  about:
    'A value of a budget admits nothing more in this window: proxies give back its allowances, and get no others.',
  fields: {
    budget: 'Uid of the object.',
    window: 'Number of the window.',
    value: 'Value that is closed.',
  },
})

export interface BudgetRenamedData {
  readonly value: string
  readonly pseudonym: string
}

export const budgetRenamed = defineEvent<BudgetRenamedData>()({
  name: 'BudgetRenamed',
  type: 'dev.sluice.budget.renamed.v1',
  version: 1,
  about:
    'A value of all budgets gets another name, because it is being erased. The event is removed at once, with all that come before it.',
  fields: { value: 'Value that is erased.', pseudonym: 'Its new name, which is random.' },
})

export interface BudgetErasedData {
  readonly pseudonym: string
  readonly removedUpTo: number
  readonly reason: string
  readonly author?: string
}

export const budgetErased = defineEvent<BudgetErasedData>()({
  name: 'BudgetErased',
  type: 'dev.sluice.budget.erased.v1',
  version: 1,
  about: 'An operator has erased a value of the budgets. Sums have not changed.',
  fields: {
    pseudonym: 'Under which name its balances continue.',
    removedUpTo: 'Position up to which all events were removed; the snapshot there has their sums.',
    reason: 'Why, in the words of the operator.',
    author: 'Who has erased it.',
  },
})

export interface BudgetWarnedData {
  readonly budget: string
  readonly window: number
  readonly value: string
  readonly percent: number
  readonly spent: string
  readonly limit: string
}

export const budgetWarned = defineEvent<BudgetWarnedData>()({
  name: 'BudgetWarned',
  type: 'dev.sluice.budget.warned.v1',
  version: 1,
  about:
    'What is spent of a value has reached a soft limit. It is appended once for each window, unless the amount grows.',
  fields: {
    budget: 'Uid of the object.',
    window: 'Number of the window.',
    value: 'Value of the budget.',
    percent: 'The soft limit, as a percentage of the amount.',
    spent: 'What was spent then.',
    limit: 'The amount of the value in this window, with adjustments.',
  },
})

export interface BudgetNotifiedData {
  readonly warning: string
  readonly budget: string
  readonly outcome: string
  readonly reason?: string
}

export const budgetNotified = defineEvent<BudgetNotifiedData>()({
  name: 'BudgetNotified',
  type: 'dev.sluice.budget.notified.v1',
  version: 1,
  about: 'A warning of a budget was passed on, or could not be. It is not passed on again.',
  fields: {
    warning: 'Id of the event BudgetWarned.',
    budget: 'Uid of the object.',
    outcome: '`delivered`, `failed`, or `logged` if the soft limit has no webhook.',
    reason: 'Why the webhook could not be called.',
  },
})

export type BudgetEvent =
  | EventOf<typeof budgetDefined>
  | EventOf<typeof budgetOpened>
  | EventOf<typeof budgetGranted>
  | EventOf<typeof budgetCharged>
  | EventOf<typeof budgetRecalled>
  | EventOf<typeof budgetReleased>
  | EventOf<typeof budgetAdjusted>
  | EventOf<typeof budgetClosed>
  | EventOf<typeof budgetRenamed>
  | EventOf<typeof budgetErased>
  | EventOf<typeof budgetWarned>
  | EventOf<typeof budgetNotified>
