/** Budgets as proxies receive them, and the messages by which a proxy and the ledger account for what is spent. */
import {
  anything,
  choice,
  type Infer,
  integer,
  list,
  map,
  optional,
  port,
  record,
  type Shape,
  text,
} from '../base/shape.ts'
import type { DirectTarget } from './resources.ts'

const windowShape = record({
  type: choice('Calendar', 'Rolling'),
  unit: choice('Minute', 'Hour', 'Day', 'Week', 'Month'),
  /** Name of the time zone of a calendar window. */
  timeZone: text,
})
export type BudgetWindow = Infer<typeof windowShape>

/** A service that receives a notification when a soft limit is reached. */
const webhookShape = record({
  target: anything as Shape<Exclude<DirectTarget, { readonly type: 'invalid' }>>,
  /** Set if the target is a static backend. */
  address: optional(record({ host: text, port })),
  /** Path with a leading slash. */
  path: text,
})
export type BudgetWebhook = Infer<typeof webhookShape>

const softLimitShape = record({
  percent: integer(1, 100),
  /** Name of the header field of responses, in lower case. */
  header: optional(text),
  webhook: optional(webhookShape),
})
export type SoftLimit = Infer<typeof softLimitShape>

/** The compiled form of a GatewayBudget. Amounts are integers as text; those of money are in 10⁻¹² USD. */
export const budgetShape = record({
  /** Identifies the balances: the uid of the object. */
  id: text,
  generation: integer(0, Number.MAX_SAFE_INTEGER),
  /** `namespace/name` of the object. */
  name: text,
  when: optional(text),
  each: optional(text),
  unit: choice('Requests', 'Tokens', 'USD'),
  amount: text,
  /** Amounts of values that differ from the default. */
  overrides: map(text),
  window: windowShape,
  onExceeded: choice('Block', 'Audit'),
  /** The amount that a request without a known usage is charged; if omitted, it is refused. */
  unpricedAmount: optional(text),
  /** The amount that each proxy may admit for a value while the ledger is out of reach; if omitted, none. */
  failOpenAmount: optional(text),
  /** In ascending order. */
  softLimits: optional(list(softLimitShape)),
})
export type BudgetConfig = Infer<typeof budgetShape>

/** The greatest amount of a budget in USD: amounts of a proxy are integers of 64 bits. */
export const maxUsd = 4_000_000

/** The amount of a value of `each`. */
export const limitOf = (
  { amount, overrides }: Pick<BudgetConfig, 'amount' | 'overrides'>,
  value: string,
): bigint => BigInt((Object.hasOwn(overrides, value) ? overrides[value] : undefined) ?? amount)

/** Identifies what has a balance: a budget, a value of its `each` (empty without one), and a window. */
interface AccountRef {
  readonly budget: string
  readonly value: string
  readonly window: number
}

/** Key of a balance in maps. The id of a budget has no line break. */
export const accountKey = (budget: string, value: string): string => `${budget}\n${value}`

/** What a holder has spent and given back of an account since its last report. */
export interface ReportEntry extends AccountRef {
  readonly charged: bigint
  readonly returned: bigint
  readonly requests: number
  /** The allowance that was missing for a request; 0 if none was. */
  readonly want: bigint
  /** Whether the holder has nothing left but what requests under way have reserved. */
  readonly isDrained: boolean
  /** The sum of the grants that the holder has received. */
  readonly granted: bigint
}

/** Whether a report says what the log must count; others only ask for more. */
export const isCounted = ({ charged, returned, requests, isDrained }: ReportEntry): boolean =>
  charged !== 0n || returned !== 0n || requests !== 0 || isDrained

/** A holder may use its allowances for this time after it sent the last report that was answered, in milliseconds. */
export const leaseMs = 45_000

/** A report of a holder, which is a run of a proxy. It is repeated until the ledger has acknowledged it. */
export interface HolderReport {
  readonly holder: string
  /** 1, 2, 3, … for each holder. The ledger counts each number once. */
  readonly sequence: number
  /** Rises with every message, so that the holder knows which one was answered. */
  readonly message: number
  /** Set once the holder gives everything back, because it ends: it must be granted nothing more. */
  readonly isLeaving?: boolean | undefined
  readonly entries: readonly ReportEntry[]
}

/** The window of a budget, and the share of each new value that the holder may use without a grant. */
export interface WindowUpdate {
  readonly budget: string
  readonly window: number
  /** Milliseconds of the epoch; undefined for rolling windows. */
  readonly endsAt: number | undefined
  /** Millionths of the amounts of this generation of the budget. */
  readonly share: number
  readonly generation: number
}

export interface AccountUpdate extends AccountRef {
  /** The sum of all grants to the holder in this window. */
  readonly granted: bigint
  readonly limit: bigint
  /** What all holders have spent, as the ledger knows it. */
  readonly spent: bigint
  /** Whether the holder must give back what it does not need. */
  readonly isRecalled: boolean
  /** Whether no other holder has an allowance that could be given back. */
  readonly isExhausted: boolean
  /** The highest soft limit that is reached, in percent; 0 if none is. */
  readonly softLimit: number
}

/** What the ledger sends to a holder. */
export interface HolderUpdate {
  /** The last report that the ledger has counted. */
  readonly counted: number
  /** The last message of the holder that the ledger has taken. */
  readonly answered: number
  /** The ledger has released the allowances of this holder. It must continue under another name. */
  readonly isReleased: boolean
  readonly windows: readonly WindowUpdate[]
  readonly accounts: readonly AccountUpdate[]
}

/** A connection of a holder to the ledger. */
export interface LedgerConnection {
  report(report: HolderReport): void
  close(): void
}

/** Connects a holder to the ledger. `receive` is called with every update; a failed connection is made again. */
export type ConnectLedger = (
  holder: string,
  receive: (update: HolderUpdate) => void,
) => LedgerConnection

/** Part of an amount, rounded down. */
export const millionths = (amount: bigint, share: number): bigint =>
  (amount * BigInt(share)) / 1_000_000n
