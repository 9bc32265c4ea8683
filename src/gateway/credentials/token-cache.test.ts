import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { endedId, nameOfSubject } from '../../ground/model/ended-sessions.ts'
import { refused } from '../tokens/refused.ts'
import { TokenCache } from './token-cache.ts'
import { TokenError } from './token-error.ts'

const config = { maxEntries: 10, defaultMs: 300_000 }
let sent: string[] = []
let expiresIn: number | undefined
let failure: TokenError | undefined

beforeEach(() => {
  vi.useFakeTimers()
  sent = []
  expiresIn = 100
  failure = undefined
})
afterEach(() => {
  vi.useRealTimers()
})

const request = (key: string, endsAt = Number.POSITIVE_INFINITY) => ({
  key,
  endsAt: () => endsAt,
  claims: () => [],
  async send() {
    sent.push(key)
    if (failure !== undefined) throw failure
    return { value: `${key}-${sent.length}`, expiresIn }
  },
})
const tokenFrom = async (cache: TokenCache, key: string, endsAt?: number) =>
  (await cache.get(request(key, endsAt))).value

describe('TokenCache', () => {
  it('asks once for many requests, and again for another key', async () => {
    const cache = new TokenCache(config)
    const all = await Promise.all(['a', 'a', 'b', 'a'].map((key) => tokenFrom(cache, key)))
    expect(all).toEqual(['a-1', 'a-1', 'b-2', 'a-1'])
    expect(cache.get(request('a'))).not.toBeInstanceOf(Promise)
    expect(sent).toEqual(['a', 'b'])
  })

  it('forgets the tokens of users whose own tokens are revoked, and of no others', async () => {
    const cache = new TokenCache(config)
    const iss = 'https://idp.example.com'
    const of = (sub: string) => ({ ...request(sub), claims: () => [{ iss, sub, iat: 1_000 }] })
    for (const sub of ['ann', 'bob']) await cache.get(of(sub))
    const id = endedId(iss, undefined, nameOfSubject('ann'))
    refused.add([{ id, at: 2_000, until: Date.now() + 60_000 }], Date.now())
    expect(cache.get(of('bob'))).toMatchObject({ value: 'bob-2' })
    expect(cache.get(of('ann'))).toBeInstanceOf(Promise)
    refused.clear()
  })

  it('renews a token in use once before it expires, and uses the old one meanwhile', async () => {
    const cache = new TokenCache(config)
    await tokenFrom(cache, 'a')
    vi.advanceTimersByTime(79_000)
    expect(await tokenFrom(cache, 'a')).toBe('a-1')
    expect(sent).toHaveLength(1)
    vi.advanceTimersByTime(2_000)
    const during = [cache.get(request('a')), cache.get(request('a'))]
    expect(during).toEqual([expect.objectContaining({ value: 'a-1' }), during[0]])
    await vi.waitFor(async () => expect(await tokenFrom(cache, 'a')).toBe('a-2'))
    expect(sent).toHaveLength(2)
  })

  it('does not use a token in the last tenth of its lifetime, even if renewals fail', async () => {
    const cache = new TokenCache(config)
    await tokenFrom(cache, 'a')
    failure = new TokenError('unavailable', 'down')
    vi.advanceTimersByTime(85_000)
    expect(await tokenFrom(cache, 'a')).toBe('a-1')
    vi.advanceTimersByTime(6_000)
    await expect(tokenFrom(cache, 'a')).rejects.toBe(failure)
  })

  it('keeps no token longer than the one of the user', async () => {
    const cache = new TokenCache(config)
    const endsAt = Date.now() + 20_000
    expect(await tokenFrom(cache, 'a', endsAt)).toBe('a-1')
    vi.advanceTimersByTime(17_000)
    expect(await tokenFrom(cache, 'a', endsAt)).toBe('a-1')
    vi.advanceTimersByTime(3_000)
    expect(await tokenFrom(cache, 'a', endsAt)).toBe('a-2')
    expect(await tokenFrom(cache, 'a', endsAt)).toBe('a-3')
  })

  it('keeps failures for seconds, apart from tokens', async () => {
    const cache = new TokenCache({ ...config, maxEntries: 1 })
    await tokenFrom(cache, 'good')
    failure = new TokenError('refused', 'no')
    for (const key of ['x', 'x', 'y', 'y'])
      await expect(tokenFrom(cache, key)).rejects.toThrow('no')
    expect(sent).toEqual(['good', 'x', 'y'])
    failure = undefined
    expect(await tokenFrom(cache, 'good')).toBe('good-1')
    vi.advanceTimersByTime(5_001)
    expect(await tokenFrom(cache, 'x')).toBe('x-4')
  })

  it('drops a token that the backend refuses, but not one that is new', async () => {
    const cache = new TokenCache(config)
    const first = await cache.get(request('a'))
    vi.advanceTimersByTime(4_000)
    cache.drop(first)
    expect(await tokenFrom(cache, 'a')).toBe('a-1')
    vi.advanceTimersByTime(1_000)
    cache.drop(first)
    expect(await tokenFrom(cache, 'a')).toBe('a-2')
    // A late answer to a request with the old token does not drop the new one.
    vi.advanceTimersByTime(11_000)
    cache.drop(first)
    expect(await tokenFrom(cache, 'a')).toBe('a-2')
  })

  it('uses a token without a lifetime once, and the default if the server names none', async () => {
    const cache = new TokenCache(config)
    expiresIn = 0
    expect([await tokenFrom(cache, 'a'), await tokenFrom(cache, 'a')]).toEqual(['a-1', 'a-2'])
    expiresIn = undefined
    await tokenFrom(cache, 'b')
    vi.advanceTimersByTime(200_000)
    expect(await tokenFrom(cache, 'b')).toBe('b-3')
  })

  it('bounds the requests under way', async () => {
    const cache = new TokenCache(config)
    const all = await Promise.allSettled(
      Array.from({ length: 300 }, (_, index) => tokenFrom(cache, `user-${index}`)),
    )
    expect(all.filter(({ status }) => status === 'rejected')).toHaveLength(44)
  })
})
