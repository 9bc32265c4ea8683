import { expect, it } from 'vitest'
import { SlidingRetryBudget } from './budget.ts'

it('permits the minimum rate, and then a percentage of the requests of the last interval', () => {
  let now = 0
  const minRetries = { count: 2, intervalMs: 1_000 }
  const budget = new SlidingRetryBudget({ percent: 20, intervalMs: 10_000, minRetries }, () => now)
  const takeMany = (count: number) => Array.from({ length: count }, () => budget.take())
  expect(takeMany(3)).toEqual([true, true, false])
  for (let request = 0; request < 25; request++) budget.countRequest()
  expect(takeMany(4)).toEqual([true, true, true, false])
  now = 5_000
  expect(takeMany(3)).toEqual([true, true, false])
  now = 30_000
  expect(takeMany(3)).toEqual([true, true, false])
})
