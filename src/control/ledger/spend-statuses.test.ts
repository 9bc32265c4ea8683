import { describe, expect, it } from 'vitest'
import {
  budgetCharged,
  budgetDefined,
  budgetOpened,
  type SluiceEvent,
} from '../../../events/index.ts'
import { newEvent } from '../log/index.ts'
import { LedgerFold } from './ledger-fold.ts'
import { SpendStatuses } from './spend-statuses.ts'

const window = { type: 'Calendar', unit: 'Month', timeZone: 'UTC' }

/** A ledger with budgets of 10 requests, and the statuses that a replica writes. */
function ledgerWith(names: readonly string[], each?: string) {
  const fold = new LedgerFold()
  let position = 0
  const statuses = new SpendStatuses()
  const add = (definition: Parameters<typeof newEvent>[0], data: object) => {
    const about = { kind: 'Ledger', name: 'test' }
    const event = newEvent(definition, { source: '/test', epoch: 0 }, about, {
      id: `${position}`,
      data,
    })
    statuses.note(fold.apply({ position: ++position, event: event as unknown as SluiceEvent }))
  }
  const shown = names.map((name) => ({ id: name, name: `default/${name}`, ...(each && { each }) }))
  for (const { id, name } of shown) {
    const spec = { unit: 'Requests', amount: '10', overrides: {}, window }
    add(budgetDefined, { budget: id, name, generation: 1, ...spec })
    add(budgetOpened, { budget: id, window: 1, endsAt: '2030-01-01T00:00:00.000Z' })
  }
  statuses.configure(new Map(shown.map((one) => [one.id, one])))
  let sequence = 0
  const spend = (budget: string, value = '', charged = '1') => {
    const charges = [{ budget, window: 1, value, charged, requests: Number(charged) }]
    add(budgetCharged, { holder: 'p', sequence: ++sequence, charges })
  }
  const take = (seconds: number) =>
    statuses.take(fold, { now: Date.now(), monotonic: seconds * 1_000 })
  return { statuses, spend, take }
}

describe('statuses of budgets', () => {
  it('are written at most every 10 seconds, however much is spent', () => {
    const { statuses, spend, take } = ledgerWith(['a'])
    spend('a')
    expect(take(0)).toEqual(['GatewayBudget/default/a'])
    for (let at = 1; at < 10; at++) {
      spend('a', '', at === 9 ? '2' : '0')
      expect(take(at)).toEqual([])
    }
    expect(statuses.of('a')).toMatchObject({ spent: '1', remaining: '9' })
    expect(take(10)).toEqual(['GatewayBudget/default/a'])
    expect(statuses.of('a')).toMatchObject({ spent: '3', remaining: '7' })
    expect(take(30)).toEqual([])
  })

  it('are written in turn, 10 of many budgets at a time', () => {
    const names = Array.from({ length: 25 }, (_, at) => `b${at}`)
    const { spend, take } = ledgerWith(names)
    for (const name of names) spend(name)
    const taken = [take(0), take(1), take(2)]
    expect(taken.map(({ length }) => length)).toEqual([10, 10, 5])
    expect(new Set(taken.flat()).size).toBe(25)
  })

  it('list the values of which the greatest part is spent', () => {
    const { statuses, spend, take } = ledgerWith(['a'], 'jwt.sub')
    for (const [at, value] of [...'ugvbxw'].entries()) spend('a', value, `${at + 1}`)
    spend('a', 'over', '12')
    take(0)
    expect(statuses.of('a')).toMatchObject({
      spent: '33',
      values: 7,
      exhausted: 1,
      remaining: null,
    })
    const highest = statuses.of('a')?.highest as { readonly value: string }[]
    expect(highest.map(({ value }) => value)).toEqual(['over', 'w', 'x', 'b', 'v'])
    expect(highest[0]).toEqual({ value: 'over', limit: '10', spent: '12', remaining: '0' })
  })
})
