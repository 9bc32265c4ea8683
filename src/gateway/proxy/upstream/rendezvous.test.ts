import { expect, it } from 'vitest'
import { plainAddress, UpstreamEndpoint } from './endpoint.ts'
import { endpointOfSession } from './rendezvous.ts'

const all = Array.from(
  { length: 10 },
  (_, at) => new UpstreamEndpoint(plainAddress(`10.0.0.${at + 1}`, 8080)),
)
const sessions = Array.from({ length: 10_000 }, (_, at) => `session-${at}`)
const chosen = (endpoints: readonly UpstreamEndpoint[]) =>
  sessions.map((session) => endpointOfSession(endpoints, session, () => true))

it('spreads sessions evenly, whatever the order of the endpoints', () => {
  const found = chosen(all)
  expect(chosen(all.toReversed())).toEqual(found)
  for (const endpoint of all) {
    const share = found.filter((one) => one === endpoint).length
    expect(Math.abs(share - sessions.length / all.length)).toBeLessThan(120)
  }
})

it('moves only the sessions of an endpoint that leaves, and spreads them over all others', () => {
  const [gone, ...others] = all
  const before = chosen(all)
  const after = chosen(others)
  const moved = after.filter((one, at) => one !== before[at])
  expect(moved.length).toBe(before.filter((one) => one === gone).length)
  for (const endpoint of others) {
    expect(moved.filter((one) => one === endpoint).length).toBeGreaterThan(moved.length / 18)
  }
})
