import { expect, it } from 'vitest'
import { compareRandomly } from './run.ts'

const configurations = 4
const requests = 60

// `npm run compare-simulator` does the same for longer.
it('decides like a gateway that records its requests', async () => {
  const compared = await compareRandomly(1, configurations, requests)
  expect(compared.differences.slice(0, 20)).toEqual([])
  expect(compared.requests).toBe(configurations * requests)
})
