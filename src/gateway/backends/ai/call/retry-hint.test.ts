import { expect, it } from 'vitest'
import type { HeaderFields } from '../../../../ground/exchange/exchange.ts'
import { retryHintMs } from './retry-hint.ts'

const hint = (fields: Record<string, string>, status = 429) =>
  retryHintMs({ status, headers: { get: (name: string) => fields[name] } as HeaderFields }, 0)

it('waits for the reset of the limit that is exhausted', () => {
  const requests = { 'x-ratelimit-reset-requests': '1s', 'x-ratelimit-remaining-requests': '99' }
  const tokens = { 'x-ratelimit-reset-tokens': '6m0s', 'x-ratelimit-remaining-tokens': '0' }
  expect(hint({ ...requests, ...tokens })).toBe(360_000)
  expect(hint({ ...requests, ...tokens, 'x-ratelimit-remaining-requests': '0' })).toBe(360_000)
  expect(hint({ ...requests, ...tokens, 'retry-after': '2' })).toBe(2_000)
})

it('waits for the first reset if no limit is known to be exhausted', () => {
  const resets = { 'x-ratelimit-reset-requests': '1s', 'x-ratelimit-reset-tokens': '6m0s' }
  expect(hint(resets)).toBe(1_000)
  expect(hint({ ...resets, 'x-ratelimit-remaining-tokens': '5' })).toBe(1_000)
  expect(hint({})).toBe(0)
})

it('does not wait for limits that are left if the failure has another cause', () => {
  const requests = { 'x-ratelimit-reset-requests': '8ms', 'x-ratelimit-remaining-requests': '99' }
  expect(hint(requests, 529)).toBe(0)
  expect(hint({ ...requests, 'x-ratelimit-remaining-requests': '0' }, 529)).toBe(8)
  expect(hint({ ...requests, 'retry-after': '2' }, 529)).toBe(2_000)
})
