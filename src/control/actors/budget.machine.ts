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
import { type FirstGrants, Holdings, noGrants } from './holdings.ts'
import { type ActorSnapshot, createStep } from './step.ts'

/**
 * A balance belongs to one fold. Most events are charges, so they change it in place. All other events make a new one.
 */
export interface Balance {
  readonly holdings: Holdings
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

const empty: Balance = {
  holdings: new Holdings(noGrants),
  slices: {},
  adjusted: 0n,
  requests: 0,
  warned: {},
}

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
    grant: assign(({ context, event }) =>
      event.type === 'GRANTED'
        ? { holdings: context.holdings.withGrant(event.holder, event.amount) }
        : {},
    ),
    charge: assign(({ context, event }) => {
      if (event.type !== 'CHARGED') return {}
      context.holdings.charge(event.holder, event)
      if (event.charged !== 0n) chargeSlice(context, event)
      context.requests += event.requests
      return {}
    }),
    release: assign(({ context, event }) => {
      if (event.type !== 'RELEASED') return {}
      const holdings = context.holdings.withRelease(event.holder)
      return holdings === context.holdings ? {} : { holdings }
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

export const newBalance = (first: FirstGrants): BalanceSnapshot => ({
  value: 'granted',
  context: { ...empty, holdings: new Holdings(first) },
})

/** The next snapshot of a balance. */
export const nextBalance = createStep<BalanceSnapshot['value'], Balance, BalanceInput>(
  budgetMachine,
)
