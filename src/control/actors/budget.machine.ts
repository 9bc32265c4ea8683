/**
 * The actor of one balance: a value of a budget in its current window.
 *
 * ```
 *   granted ── RECALLED ──► recalled ── GRANTED ──► granted
 *   granted, recalled ── CLOSED ──► closed
 *   any ── CHARGED, RELEASED, ADJUSTED, WARNED ──► same
 * ```
 */
import { assign, setup } from 'xstate'
import { type ActorSnapshot, createStep } from './step.ts'

/** What one holder got of a balance, and what became of it. Sums of this window. */
export interface Holding {
  readonly granted: bigint
  charged: bigint
  returned: bigint
  /** Whether only requests under way use the rest. Holds until the next change. */
  isDrained: boolean
}

/**
 * A balance belongs to one fold. Most events are charges, so they change it in place: copies would take more than half
 * of the time of a fold. All other events make a new one.
 */
export interface Balance {
  readonly holdings: Readonly<Record<string, Holding>>
  /** Charges by the slice of the window in which the ledger counted them. Calendar windows have one slice. */
  slices: Record<number, bigint>
  readonly adjusted: bigint
  requests: number
  /** The last warning of each soft limit: the amount then, and the time in milliseconds of the epoch. */
  readonly warned: Readonly<Record<number, { readonly limit: bigint; readonly at: number }>>
}

export type BalanceInput =
  | { readonly type: 'GRANTED'; readonly holder: string; readonly amount: bigint }
  | {
      readonly type: 'CHARGED'
      readonly holder: string
      readonly charged: bigint
      readonly returned: bigint
      readonly requests: number
      /** What the holder had been granted, as it knew, when it had given back all that it could. */
      readonly drained: bigint | undefined
      readonly slice: number
      /** Slices before this one no longer count. */
      readonly firstSlice: number
    }
  | { readonly type: 'RECALLED' }
  | { readonly type: 'CLOSED' }
  | { readonly type: 'RELEASED'; readonly holder: string }
  | { readonly type: 'ADJUSTED'; readonly amount: bigint }
  | {
      readonly type: 'WARNED'
      readonly percent: number
      readonly limit: bigint
      readonly at: number
    }

const noHolding: Holding = { granted: 0n, charged: 0n, returned: 0n, isDrained: false }

const empty: Balance = { holdings: {}, slices: {}, adjusted: 0n, requests: 0, warned: {} }

const holdingOf = ({ holdings }: Balance, holder: string): Holding => holdings[holder] ?? noHolding

function chargeSlice(
  balance: Balance,
  { slice, firstSlice, charged }: BalanceInput & { readonly type: 'CHARGED' },
): void {
  const { slices } = balance
  const known = slices[slice]
  if (known !== undefined) {
    slices[slice] = known + charged
    return
  }
  const lasting = Object.entries(slices).filter(([index]) => Number(index) >= firstSlice)
  balance.slices = Object.fromEntries([...lasting, [slice, charged]])
}

/** The balance itself, or one that has the holder. */
function withHolder(balance: Balance, holder: string): Balance {
  if (balance.holdings[holder] !== undefined) return balance
  return { ...balance, holdings: { ...balance.holdings, [holder]: { ...noHolding } } }
}

const anyState = {
  CHARGED: { actions: 'charge' },
  RELEASED: { actions: 'release' },
  ADJUSTED: { actions: 'adjust' },
  WARNED: { actions: 'warn' },
} as const

const openState = {
  ...anyState,
  GRANTED: { target: 'granted', actions: 'grant' },
  CLOSED: 'closed',
} as const

/** @internal xstate's declarations do not compile with exactOptionalPropertyTypes, so ours do not name them. */
const budgetMachine = setup({
  types: { context: {} as Balance, events: {} as BalanceInput },
  actions: {
    grant: assign(({ context, event }) => {
      if (event.type !== 'GRANTED') return {}
      const before = holdingOf(context, event.holder)
      const holding = { ...before, granted: before.granted + event.amount, isDrained: false }
      return { holdings: { ...context.holdings, [event.holder]: holding } }
    }),
    charge: assign(({ context, event }) => {
      if (event.type !== 'CHARGED') return {}
      const { holder, charged, returned, drained, requests } = event
      const balance = withHolder(context, holder)
      const holding = holdingOf(balance, holder)
      holding.charged += charged
      holding.returned += returned
      // A grant may have crossed the report.
      holding.isDrained = drained === holding.granted
      if (charged !== 0n) chargeSlice(balance, event)
      balance.requests += requests
      return balance === context ? {} : balance
    }),
    release: assign(({ context, event }) => {
      if (event.type !== 'RELEASED') return {}
      const before = context.holdings[event.holder]
      if (before === undefined) return {}
      const holding = { ...before, granted: before.charged + before.returned, isDrained: true }
      return { holdings: { ...context.holdings, [event.holder]: holding } }
    }),
    adjust: assign(({ context, event }) =>
      event.type === 'ADJUSTED' ? { adjusted: context.adjusted + event.amount } : {},
    ),
    warn: assign(({ context, event }) => {
      if (event.type !== 'WARNED') return {}
      const { percent, limit, at } = event
      return { warned: { ...context.warned, [percent]: { limit, at } } }
    }),
  },
}).createMachine({
  id: 'budget',
  context: empty,
  initial: 'granted',
  states: {
    granted: { on: { ...openState, RECALLED: 'recalled' } },
    recalled: { on: openState },
    // A grant may have crossed the end.
    closed: { on: { ...anyState, GRANTED: { actions: 'grant' } } },
  },
})

export type BalanceSnapshot = ActorSnapshot<'granted' | 'recalled' | 'closed', Balance>

/** A balance of which each holder has been granted an amount. */
export function newBalance(grants: Iterable<readonly [string, bigint]>): BalanceSnapshot {
  const holdings: Record<string, Holding> = {}
  for (const [holder, granted] of grants) holdings[holder] = { ...noHolding, granted }
  return { value: 'granted', context: { ...empty, holdings } }
}

/** The next snapshot of a balance. */
export const nextBalance = createStep<BalanceSnapshot['value'], Balance, BalanceInput>(
  budgetMachine,
)

/** What a holder may still spend, as far as it has reported; 0 if it has spent more than it got. */
export function outstandingOf({ granted, charged, returned }: Holding): bigint {
  const left = granted - charged - returned
  return left > 0n ? left : 0n
}
