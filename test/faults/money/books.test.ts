import { describe, expect, it } from 'vitest'
import {
  budgetCharged,
  budgetDefined,
  budgetGranted,
  budgetOpened,
  type SluiceEvent,
} from '../../../events/index.ts'
import { newEvent } from '../../../src/control/log/index.ts'
import { compareBooks, Holders } from './books.ts'
import type { Billed } from './vendor.ts'

const about = { kind: 'Ledger', name: 'test' }
const second = 1_000
const holder = 'edge-1~a'
const account = { budget: 'b', window: 1, value: 'sales' }

/** A ledger with a limit of 100 tokens: reports of 10 at 1 s, 2 s and 3 s. */
function ledgerOf(charges: readonly string[] = ['10', '10', '10']): Holders {
  const holders = new Holders()
  let position = 0
  const add = (at: number, ...[definition, data]: readonly [never, object]) => {
    const writer = { source: '/test', epoch: 0, clock: { now: () => at } }
    const event = newEvent(definition, writer, about, { id: `${++position}`, data: data as never })
    holders.take({ position, event: event as SluiceEvent })
  }
  const amount = { unit: 'Tokens', amount: '100', overrides: {} }
  const window = { type: 'Calendar', unit: 'Month', timeZone: 'UTC' }
  const definition = { budget: 'b', name: 'default/b', generation: 1, ...amount, window }
  add(0, budgetDefined as never, definition)
  add(0, budgetOpened as never, { budget: 'b', window: 1 })
  add(second, budgetGranted as never, { holder, grants: [{ ...account, amount: '60' }] })
  for (const [at, charged] of charges.entries()) {
    const data = { holder, sequence: at + 1, charges: [{ ...account, charged, requests: 1 }] }
    add((at + 1) * second, budgetCharged as never, data)
  }
  return holders.finish()
}

const bill = (endedAt: number, tokens: number): Billed => ({
  team: 'sales',
  proxy: 'edge-1',
  run: 0,
  endedAt,
  tokens,
  usd: 0n,
})
const reported = [bill(500, 10), bill(1_500, 10), bill(2_500, 10)]
const kill = { proxy: 'edge-1', at: 4 * second }

describe('the books of a fault run', () => {
  it('agree if everything is charged', () => {
    expect(compareBooks(reported, ledgerOf(), [])).toMatchObject({
      problems: [],
      accounts: 1,
      incomplete: 0,
    })
  })

  it('accept what a killed proxy had not reported', () => {
    const books = compareBooks([...reported, bill(3_900, 7)], ledgerOf(), [kill])
    expect(books).toMatchObject({ problems: [], incomplete: 1, longestLossMs: 100 })
    expect(books.lost.Tokens).toBe(7n)
  })

  it.each([
    ['a charge of a living proxy is missing', [...reported, bill(3_900, 7)], [], /7 of 37 are not/],
    ['something is charged twice', reported.slice(1), [], /20 are billed, but 30 are charged/],
    [
      'more is missing than was held',
      [...reported, bill(3_900, 31)],
      [kill],
      /31 are not charged, more than the 30 that it held/,
    ],
  ])('report if %s', (_, bills, kills, text) => {
    expect(compareBooks(bills, ledgerOf(), kills).problems.join('\n')).toMatch(text)
  })

  it('report if charges are missing that were due before the last two reports', () => {
    const ledger = ledgerOf(['5', '5', '5', '5', '5', '5'])
    const killed = { ...kill, at: 7 * second }
    const text = 'charges of the last 6500 ms are missing, of which 4000 may be'
    expect(compareBooks([bill(500, 30), bill(6_500, 7)], ledger, [killed]).problems).toEqual([])
    expect(compareBooks([bill(500, 37)], ledger, [killed]).problems).toEqual([
      expect.stringContaining(text),
    ])
  })

  it('report if more is spent than the amount', () => {
    const bills = [bill(500, 60), bill(1_500, 60)]
    expect(compareBooks(bills, ledgerOf(['60', '60']), []).problems).toEqual([
      'default/b: sales has spent 120 of 100, and only 0 are not charged',
    ])
  })
})
