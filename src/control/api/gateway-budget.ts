/** GatewayBudget: how much the requests to its targets may spend in a window. */
import { maxUsd } from '../../ground/model/budgets.ts'
import {
  choice,
  type Infer,
  integer,
  list,
  object,
  optional,
  required,
  text,
} from '../../ground/schema/field.ts'
import { pathWithQuery } from '../../ground/schema/host.ts'
import { rule } from '../../ground/schema/rules.ts'
import { backendObjectReference } from '../../ground/schema/shapes/references.ts'
import { celExpression } from '../../ground/schema/strings.ts'
import { isTimeZone } from '../ledger/windows.ts'
import { policyStatusFields, policyTargetReference } from './gateway-policy.ts'

const decimalAmount = text({ min: 1, max: 32, pattern: '^[0-9]{1,18}(\\.[0-9]{1,12})?$' })

const limit = object('BudgetLimit', {
  unit: required(
    choice('BudgetUnit', {
      USD: 'what providers bill, by the prices of the model catalog',
      Tokens: 'input and output tokens of language models',
      Requests:
        'requests; if an expression reads `llm`, only those that reach a language model, and if one reads `mcp`, calls of MCP tools',
    }),
    'What is counted.',
  ),
  amount: required(
    decimalAmount,
    `Amount for each window, such as "12.50"; at most ${maxUsd} USD. Tokens and requests are whole numbers.`,
  ),
})

const override = object('BudgetOverride', {
  value: required(text({ max: 1024 }), 'Value of `each`.'),
  amount: required(decimalAmount, 'Amount of this value, in the unit of the limit.'),
})

const window = object(
  'BudgetWindowSpec',
  {
    type: optional(
      choice('BudgetWindowType', {
        Calendar: 'spending starts at zero in each calendar unit, such as each day',
        Rolling: 'counts what was spent in the last period of this length',
      }),
      { doc: 'How the window moves.', default: 'Calendar' },
    ),
    unit: required(
      choice('BudgetWindowUnit', {
        Minute: 'a minute',
        Hour: 'an hour',
        Day: 'a day',
        Week: 'a week that begins on Monday',
        Month: 'a month; 30 days if the window is rolling',
      }),
      'Length of the window.',
    ),
    timeZone: optional(text({ min: 1, max: 64 }), {
      doc: 'Time zone in which calendar units begin, such as `Europe/Berlin`.',
      default: 'UTC',
    }),
  },
  {
    rules: [
      rule<{ readonly timeZone?: string }>({
        message: 'timeZone must be the name of a time zone, such as Europe/Berlin',
        holds: ({ timeZone }) => timeZone === undefined || isTimeZone(timeZone),
        at: 'timeZone',
      }),
    ],
  },
)

const webhook = object('BudgetWebhook', {
  backendRef: required(
    backendObjectReference,
    'Service or static GatewayBackend. Its policies decide about TLS. Redirects are not followed.',
  ),
  path: optional(text({ min: 1, max: 1024, pattern: `^/[${pathWithQuery}]*$` }), {
    doc: 'Path of the request, with its query.',
    default: '/',
  }),
})

const softLimit = object('BudgetSoftLimit', {
  percent: required(
    integer({ min: 1, max: 100 }),
    'Part of the amount. If that much is spent, there is a warning once for each window and value: a Kubernetes Event, a line in the log, and the condition `SoftLimitReached`.',
  ),
  responseHeader: optional(
    text({ min: 1, max: 64, pattern: '^[a-zA-Z0-9-]+$' }),
    'Header of responses to requests of a value of which that much is spent, such as `x-budget-warning`. It has the name of the budget and the percentage.',
  ),
  webhook: optional(
    webhook,
    'Service that gets the warning as a CloudEvent (POST with JSON). Failed calls are repeated.',
  ),
})

interface SpecFields {
  readonly limit: { readonly unit: string; readonly amount: string }
  readonly each?: string
  readonly overrides?: readonly { readonly value: string; readonly amount: string }[]
  readonly unpriced?: string
  readonly unpricedAmount?: string
  readonly onStoreLost?: string
  readonly failOpenAmount?: string
}

const amountsOf = ({ limit, overrides = [], unpricedAmount, failOpenAmount }: SpecFields) =>
  [limit.amount, unpricedAmount, failOpenAmount, ...overrides.map(({ amount }) => amount)].filter(
    (amount) => amount !== undefined,
  )

const rules = [
  rule<SpecFields>({
    message: 'overrides need each',
    cel: '!has(self.overrides) || has(self.each)',
    holds: ({ overrides, each }) => overrides === undefined || each !== undefined,
  }),
  rule<SpecFields>({
    message: 'amounts of Tokens and Requests must be whole numbers',
    cel: "self.limit.unit == 'USD' || !self.limit.amount.contains('.') && (!has(self.unpricedAmount) || !self.unpricedAmount.contains('.')) && (!has(self.failOpenAmount) || !self.failOpenAmount.contains('.')) && (!has(self.overrides) || self.overrides.all(o, !o.amount.contains('.')))",
    holds: (spec) =>
      spec.limit.unit === 'USD' || !amountsOf(spec).some((amount) => amount.includes('.')),
  }),
  rule<SpecFields>({
    message: `amounts in USD must be at most ${maxUsd}`,
    cel: `self.limit.unit != 'USD' || double(self.limit.amount) <= ${maxUsd}.0 && (!has(self.unpricedAmount) || double(self.unpricedAmount) <= ${maxUsd}.0) && (!has(self.failOpenAmount) || double(self.failOpenAmount) <= ${maxUsd}.0) && (!has(self.overrides) || self.overrides.all(o, double(o.amount) <= ${maxUsd}.0))`,
    holds: (spec) =>
      spec.limit.unit !== 'USD' || amountsOf(spec).every((one) => Number(one) <= maxUsd),
  }),
  rule<SpecFields>({
    message: 'unpricedAmount must be set if and only if unpriced is CountAs',
    cel: "has(self.unpricedAmount) == (has(self.unpriced) && self.unpriced == 'CountAs')",
    holds: ({ unpriced, unpricedAmount }) =>
      (unpricedAmount !== undefined) === (unpriced === 'CountAs'),
  }),
  rule<SpecFields>({
    message: 'failOpenAmount must be set if and only if onStoreLost is FailOpen',
    cel: "has(self.failOpenAmount) == (has(self.onStoreLost) && self.onStoreLost == 'FailOpen')",
    holds: ({ onStoreLost, failOpenAmount }) =>
      (failOpenAmount !== undefined) === (onStoreLost === 'FailOpen'),
  }),
]

export const gatewayBudgetSpec = object(
  'BudgetSpec',
  {
    targetRefs: required(
      list(policyTargetReference, { min: 1, max: 16 }),
      'Gateways, ListenerSets, HTTPRoutes or GRPCRoutes (or one of their listeners or rules) whose requests are counted.',
    ),
    when: optional(
      celExpression,
      'Expression that selects requests, such as `llm.provider == "openai"`. If omitted, all are counted. Requests for which it fails are counted.',
    ),
    each: optional(
      celExpression,
      'Expression whose values have a budget each, such as `apiKey.team` or `identity.principal`. Requests without a value share one.',
    ),
    limit: required(limit, 'How much may be spent in each window.'),
    overrides: optional(
      list(override, { min: 1, max: 1024, unique: { by: ['value'] } }),
      'Amounts of single values of `each`.',
    ),
    window: required(window, 'The period after which the whole amount is available again.'),
    softLimits: optional(
      list(softLimit, { min: 1, max: 8, unique: { by: ['percent'] } }),
      'Parts of the amount that are warned about.',
    ),
    onExceeded: optional(
      choice('BudgetAction', {
        Block: 'further requests are refused with 429',
        Audit: 'requests are only counted',
      }),
      { doc: 'What happens when the amount is spent.', default: 'Block' },
    ),
    unpriced: optional(
      choice('BudgetUnpriced', {
        Refuse: 'the request is refused with 403',
        CountAs: 'the request is charged `unpricedAmount`',
      }),
      {
        doc: 'What happens to a request whose cost cannot be known: the model has no price, or the gateway does not read the format.',
        default: 'Refuse',
      },
    ),
    unpricedAmount: optional(decimalAmount, 'Amount that such a request is charged.'),
    onStoreLost: optional(
      choice('BudgetStoreLost', {
        FailClosed: 'requests are refused with 503 until the ledger is back',
        FailOpen: 'each proxy admits up to `failOpenAmount` more for each value',
      }),
      {
        doc: 'What happens when a proxy has not reached the ledger for 45 seconds. Until then it uses the allowance that it has.',
        default: 'FailClosed',
      },
    ),
    failOpenAmount: optional(
      decimalAmount,
      'Amount that each proxy admits for each value without the ledger, which bounds the overshoot.',
    ),
  },
  { rules },
)
export type GatewayBudgetSpec = Infer<typeof gatewayBudgetSpec>

const amountText = text({ max: 64 })

const valueStatus = object('BudgetValueStatus', {
  value: required(
    text({ max: 256 }),
    'Value of `each`, or its beginning; empty for requests without one.',
  ),
  limit: required(amountText, 'Amount of the value in this window, with adjustments.'),
  spent: required(amountText, 'What is spent of it.'),
  remaining: required(amountText, 'What may still be spent of it.'),
})

/** Amounts of the status are decimals as text, in the unit of the limit. */
export const gatewayBudgetStatus = object('BudgetStatus', {
  ...policyStatusFields,
  spent: optional(
    amountText,
    'What is spent in the current window, in the unit of the limit; with `each`, of all values together. Written at most every 10 seconds.',
  ),
  reserved: optional(
    amountText,
    'What proxies hold as allowances for further requests. It is a part of what remains.',
  ),
  remaining: optional(
    amountText,
    'What may still be spent, with adjustments. Not set with `each`.',
  ),
  resetsAt: optional(
    text({ max: 64 }),
    'When the window ends (RFC 3339). Not set for rolling windows.',
  ),
  values: optional(
    integer({ min: 0 }),
    'Number of values of `each` with a balance in the current window.',
  ),
  exhausted: optional(integer({ min: 0 }), 'Number of these values of which nothing remains.'),
  highest: optional(
    list(valueStatus, { max: 5 }),
    'The values of which the greatest part is spent. `sluice budgets list --values` shows all.',
  ),
})
