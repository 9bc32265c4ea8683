import { describe, expect, it } from 'vitest'
import { allocations } from '../../bench/proxy/garbage.ts'

/**
 * Bytes that a worker may allocate for each unit, a fifth above what `npm run bench -- proxy/garbage` counts. They do
 * not depend on how busy the machine is; only code that V8 has not compiled yet allocates more.
 */
const atMost = { get: 780, chat: 7_400, 'mcp-call': 14_200 } as const

describe('garbage of a worker', () => {
  it.each(Object.entries(atMost) as [keyof typeof atMost, number][])(
    'does not grow for a %s (%i bytes)',
    async (work, bytes) => {
      const counted = await allocations[work]({ rounds: 2, quick: true })
      expect(Math.min(...counted)).toBeGreaterThan(0)
      expect(Math.min(...counted)).toBeLessThan(bytes)
    },
    180_000,
  )
})
