import { describe, expect, it } from 'vitest'
import {
  budgetCharged,
  budgetDefined,
  budgetGranted,
  budgetOpened,
  budgetReleased,
  type SluiceEvent,
} from '../../../events/index.ts'
import { newEvent } from '../log/index.ts'
import { dueWindow } from './decide.ts'
import { balanceOf, LedgerFold, poolOf } from './ledger-fold.ts'

const writer = { source: '/test', epoch: 0, clock: { now: () => Date.UTC(2026, 0, 5) } }
const about = { kind: 'Ledger', name: 'test' }
const amount = { unit: 'Tokens', amount: '100', overrides: { bob: '50' } }
const window = { type: 'Rolling', unit: 'Day', timeZone: 'UTC' }
const definition = { budget: 'b', name: 'default/b', generation: 1, ...amount, window }
const report = (sequence: number, value: string, charged: string) => ({
  holder: 'p~1',
  sequence,
  charges: [{ budget: 'b', window: 1, value, charged, returned: '1', requests: 1, drained: '0' }],
})
const events = [
  newEvent(budgetDefined, writer, about, { id: '1', data: definition }),
  newEvent(budgetOpened, writer, about, { id: '2', data: { budget: 'b', window: 1 } }),
  newEvent(budgetCharged, writer, about, { id: '3', data: report(1, 'ada', '7') }),
  newEvent(budgetCharged, writer, about, { id: '4', data: report(1, 'ada', '7') }),
  newEvent(budgetCharged, writer, about, { id: '5', data: report(2, 'bob', '5') }),
] as readonly SluiceEvent[]

function foldOf(): LedgerFold {
  const fold = new LedgerFold()
  for (const [at, event] of events.entries()) fold.apply({ position: at + 1, event })
  return fold
}

describe('the fold of the ledger', () => {
  it('counts a report once, also if it is in the log twice', () => {
    const budget = foldOf().budgets.get('b')
    expect([budget?.charged, budget?.requests]).toEqual([12n, 2])
  })

  it('begins again with nothing spent if the unit or the window of a budget changes', () => {
    const asked = [{ unit: 'USD' }, { window: { ...window, unit: 'Month' } }]
    for (const change of asked) {
      const fold = foldOf()
      const data = { ...definition, generation: 2, ...change }
      const event = newEvent(budgetDefined, writer, about, { id: '6', data }) as SluiceEvent
      fold.apply({ position: 6, event })
      const budget = fold.budgets.get('b')
      expect([budget?.balances.size, budget?.charged]).toEqual([0, 0n])
      expect(budget && dueWindow(budget, fold.time)?.window).toBe(2)
    }
  })

  it('keeps what is spent if only the amount of a budget changes', () => {
    const fold = foldOf()
    const data = { ...definition, generation: 2, amount: '7' }
    const event = newEvent(budgetDefined, writer, about, { id: '6', data }) as SluiceEvent
    fold.apply({ position: 6, event })
    const budget = fold.budgets.get('b')
    expect(budget?.charged).toBe(12n)
    expect(budget && dueWindow(budget, fold.time)).toBeUndefined()
  })

  it('is the same after it was stored and restored', () => {
    const fold = foldOf()
    const restored = new LedgerFold()
    restored.restore(fold.snapshot())
    for (const { first } of fold.budgets.values()) first.clear()
    expect(restored.budgets).toEqual(fold.budgets)
    expect(restored.digest()).toBe(fold.digest())
  })

  it('gives a new value what each proxy holds then, and an older value keeps its own', () => {
    const fold = foldOf()
    const budget = fold.budgets.get('b')
    if (budget === undefined) throw new Error('the budget is missing')
    const share = { budget: 'b', window: 1, share: 250_000, generation: 1 }
    const add = (event: object) =>
      fold.apply({ position: fold.position + 1, event: event as SluiceEvent })
    const held = (value: string) =>
      Array.from(balanceOf(budget, value).context.holdings, ([holder, { granted }]) => [
        holder,
        Number(granted),
      ])
    const charge = (holder: string, value: string) => ({ ...report(1, value, '3'), holder })

    for (const holder of ['q~1', 'q~2']) {
      const data = { holder, grants: [share] }
      add(newEvent(budgetGranted, writer, about, { id: holder, data }))
      add(
        newEvent(budgetCharged, writer, about, { id: `c${holder}`, data: charge(holder, holder) }),
      )
    }
    expect([held('q~1'), held('q~2')]).toEqual([
      [['q~1', 25]],
      [
        ['q~1', 25],
        ['q~2', 25],
      ],
    ])
    // 3 are spent, and one of what was granted was given back.
    expect(poolOf(budget, 'q~2', 0)).toBe(100n - 25n - 25n + 1n)
    add(newEvent(budgetReleased, writer, about, { id: 'r', data: { holder: 'q~1' } }))
    expect(held('q~2')).toEqual([['q~2', 25]])
    expect(poolOf(budget, 'q~1', 0)).toBe(100n - 3n)
    expect(held('later')).toEqual([['q~2', 25]])
    expect(held('bob').map(([holder]) => holder)).toEqual(['p~1'])
  })
})
