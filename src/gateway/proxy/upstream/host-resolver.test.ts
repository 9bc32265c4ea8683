import { expect, it } from 'vitest'
import { HostResolver } from './host-resolver.ts'
import type { Resolution } from './lookup.ts'

/** A resolver whose answers and clock the test sets; lookups wait until they are settled. */
function rig() {
  let clock = 0
  const waiting: { resolve(found: Resolution): void; reject(error: Error): void }[] = []
  const lookup = () => {
    const { promise, resolve, reject } = Promise.withResolvers<Resolution>()
    waiting.push({ resolve, reject })
    return promise
  }
  const resolver = new HostResolver({ lookup, now: () => clock })
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return {
    resolver,
    waiting,
    at: (ms: number) => {
      clock = ms
    },
    answer: async (ttlMs: number, ...addresses: string[]) => {
      waiting.shift()?.resolve({ addresses, ttlMs })
      await settled()
    },
    fail: async () => {
      waiting.shift()?.reject(new Error('SERVFAIL'))
      await settled()
    },
  }
}

it('the resolver looks up a name once for concurrent requests, and caches the answer', async () => {
  const { resolver, waiting, answer, at } = rig()
  const both = Promise.all([resolver.addresses('a.org'), resolver.addresses('a.org')])
  expect(waiting).toHaveLength(1)
  await answer(10_000, '192.0.2.1')
  expect(await both).toEqual([['192.0.2.1'], ['192.0.2.1']])
  at(9_999)
  expect(resolver.addresses('a.org')).toEqual(['192.0.2.1'])
  expect(waiting).toHaveLength(0)
})

it('the resolver refreshes an expired answer in the background', async () => {
  const { resolver, waiting, answer, at } = rig()
  resolver.warm('a.org')
  await answer(10_000, '192.0.2.1')
  at(10_001)
  expect(resolver.addresses('a.org')).toEqual(['192.0.2.1'])
  expect(waiting).toHaveLength(1)
  await answer(10_000, '192.0.2.2')
  expect(resolver.addresses('a.org')).toEqual(['192.0.2.2'])
})

it('the resolver waits for a new answer if the cached one expired long ago', async () => {
  const { resolver, answer, at } = rig()
  resolver.warm('a.org')
  await answer(10_000, '192.0.2.1')
  at(100_000)
  const found = resolver.addresses('a.org')
  await answer(10_000, '192.0.2.2')
  expect(await found).toEqual(['192.0.2.2'])
})

it('the resolver keeps using old addresses while DNS fails, and retries with backoff', async () => {
  const { resolver, waiting, answer, fail, at } = rig()
  resolver.warm('a.org')
  await answer(10_000, '192.0.2.1')
  at(100_000)
  const found = resolver.addresses('a.org')
  await fail()
  expect(await found).toEqual(['192.0.2.1'])
  at(100_199)
  expect(await resolver.addresses('a.org')).toEqual(['192.0.2.1'])
  expect(waiting).toHaveLength(0)
  at(100_201)
  const again = resolver.addresses('a.org')
  expect(waiting).toHaveLength(1)
  await fail()
  expect(await again).toEqual(['192.0.2.1'])
  at(10_000_000)
  const last = Promise.resolve(resolver.addresses('a.org')).catch((error: Error) => error)
  await fail()
  expect(await last).toMatchObject({ code: 'dns_failed' })
})

it('the resolver fails with dns_failed if it never had an answer', async () => {
  const { resolver, fail } = rig()
  const found = Promise.resolve(resolver.addresses('a.org')).catch((error: Error) => error)
  await fail()
  expect(await found).toMatchObject({ code: 'dns_failed' })
  expect(() => resolver.addresses('a.org')).toThrow('a.org')
})

it('the resolver limits very short and very long TTLs', async () => {
  const { resolver, waiting, answer, at } = rig()
  resolver.warm('short.org')
  await answer(0, '192.0.2.1')
  at(999)
  resolver.addresses('short.org')
  expect(waiting).toHaveLength(0)
  resolver.warm('long.org')
  await answer(86_400_000, '192.0.2.1')
  at(301_000)
  resolver.addresses('long.org')
  expect(waiting).toHaveLength(1)
})

it('the resolver keeps the statistics of an endpoint if the addresses change', async () => {
  const { resolver, answer, at } = rig()
  resolver.warm('a.org')
  await answer(10_000, '192.0.2.1', '2001:db8::1')
  const before = await resolver.endpoints('a.org', 80)
  expect(before.all.map(({ address }) => address.pool)).toEqual([
    '192.0.2.1:80',
    '[2001:db8::1]:80',
  ])
  at(10_001)
  resolver.addresses('a.org')
  await answer(10_000, '192.0.2.9', '192.0.2.1')
  const after = await resolver.endpoints('a.org', 80)
  expect(after.all[1]).toBe(before.all[0])
  expect(after.rivalsOf('192.0.2.9')).toEqual([before.all[0]])
})

it('keeps a separate endpoint of a name for each proxy that resolves it', () => {
  const { resolver } = rig()
  const proxy = (identity: string) =>
    ({ identity, protocol: 'http', host: '192.0.2.1', port: 3128 }) as const
  const [endpoint] = resolver.unresolved(proxy('one'), 'a.org', 443).all
  endpoint?.record({ kind: 'unreachable' }, () => 0)
  const isEjected = (identity: string) =>
    resolver.unresolved(proxy(identity), 'a.org', 443).all.map((one) => one.isEjected(() => 1))
  expect([isEjected('one'), isEjected('two')]).toEqual([[true], [false]])
})
