import { describe, expect, it } from 'vitest'
import {
  budgetCharged,
  budgetDefined,
  budgetOpened,
  type SluiceEvent,
} from '../../../events/index.ts'
import { newEvent } from '../log/index.ts'
import { dueWindow } from './decide.ts'
import { LedgerFold } from './ledger-fold.ts'

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
    expect(restored.budgets).toEqual(fold.budgets)
    expect(restored.digest()).toBe(fold.digest())
  })
})
