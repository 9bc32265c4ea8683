import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestResponse } from '../support/http-client.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  manifest,
  service,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const toPods = { name: 'pods', port: 80 }
const session = (sessionPersistence: object, more: object = {}) => ({
  backendRefs: [toPods],
  sessionPersistence,
  ...more,
})
const at = (value: string, type = 'PathPrefix') => ({ matches: [{ path: { type, value } }] })
const routed = (name: string, ...rules: object[]) =>
  httpRoute(name, { hostnames: [`${name}.example.com`], rules })

const split = (first: number, second: number) =>
  manifest(
    routed('split', {
      backendRefs: [
        { name: 'first', port: 80, weight: first },
        { name: 'second', port: 80, weight: second },
      ],
      sessionPersistence: { sessionName: 'split' },
    }),
  )

const pods = (...ports: number[]) => manifest(...service('pods', ports))

const upstreams = [useUpstream('a'), useUpstream('b'), useUpstream('c')] as const
const [a, b, c] = upstreams
const port = await freePort()
const running = useGateway(() => ({
  manifests: {
    'base.yaml': manifest(
      gateway(port),
      ...service('first', [a.port]),
      ...service('second', [b.port]),
      aiBackend('model', { provider: { vendorA: {}, host: '127.0.0.1', port: 1 } }),
      routed('cookie', session({})),
      routed(
        'permanent',
        session({
          sessionName: 'kept',
          absoluteTimeout: '5m',
          cookieConfig: { lifetimeType: 'Permanent' },
        }),
      ),
      routed('short', session({ sessionName: 'short', absoluteTimeout: '50ms' })),
      routed('header', session({ type: 'Header', sessionName: 'X-Session' })),
      routed(
        'paths',
        session({}, at('/a/')),
        session({}, at('/b/exact', 'Exact')),
        session({}, at('/c/[a-z]+/d', 'RegularExpression')),
      ),
      routed('refused', session({ sessionName: 'a b' })),
      routed('models', { ...session({}), backendRefs: [toBackend('model')] }),
    ),
    'pods.yaml': pods(a.port, b.port, c.port),
    'split.yaml': split(1, 1),
  },
}))

const ask = (name: string, headers: Record<string, string> = {}, path = '/') =>
  running.send(port, { host: `${name}.example.com`, path, headers })

const servedBy = ({ body }: TestResponse) => JSON.parse(body).upstream as string

const cookies = ({ headers }: TestResponse): string[] => [headers['set-cookie'] ?? []].flat()

/** The first cookie of a response, without its attributes. */
const cookieOf = (response: TestResponse) => cookies(response)[0]?.split(';')[0] ?? ''

/** Upstreams of so many requests. */
async function manyServedBy(count: number, name: string, headers: Record<string, string>) {
  const names = new Set<string>()
  for (let done = 0; done < count; done++) {
    const response = await ask(name, headers)
    expect(response.headers['set-cookie']).toBeUndefined()
    names.add(servedBy(response))
  }
  return [...names]
}

describe('session persistence', () => {
  it('keeps a client at its first endpoint, by an opaque cookie', async () => {
    const first = await ask('cookie')
    const [cookie = ''] = cookies(first)
    expect(cookie).toMatch(
      /^sluice-session-[0-9a-f]{8}=[\w-]+; Path=\/; HttpOnly; SameSite=Strict$/,
    )
    expect(
      Buffer.from(cookie.split(/[=;]/)[1] ?? '', 'base64url').toString('latin1'),
    ).not.toContain('127')
    const headers = { cookie: `other=1; ${cookieOf(first)}; more=2` }
    expect(await manyServedBy(30, 'cookie', headers)).toEqual([servedBy(first)])
  })

  it('gives clients without a session to all endpoints', async () => {
    const seen = new Set<string>()
    await waitFor('every endpoint', async () => {
      seen.add(servedBy(await ask('cookie')))
      return seen.size === 3
    })
  })

  it('ignores a cookie of another rule or a forged one', async () => {
    const [, value = ''] = cookieOf(await ask('permanent')).split('=')
    const changed = `${value.slice(0, -2)}AA`
    for (const one of [`kept=${changed}`, 'kept=', `split=${value}`, 'kept=nothing']) {
      const name = one.startsWith('split') ? 'split' : 'permanent'
      expect(cookies(await ask(name, { cookie: one }))).toHaveLength(1)
    }
  })

  it('lets a permanent cookie live for as long as the session', async () => {
    const [cookie] = cookies(await ask('permanent'))
    expect(cookie).toMatch(/^kept=[\w-]+; Path=\/; Max-Age=300; HttpOnly; SameSite=Strict$/)
  })

  it('begins a new session after the absolute timeout', async () => {
    const cookie = cookieOf(await ask('short'))
    const fresh = await waitFor(
      'another session',
      async () => cookies(await ask('short', { cookie }))[0],
    )
    expect(fresh).toMatch(/^short=[\w-]+; Path=\/; HttpOnly/)
    expect(fresh).not.toContain(cookie)
  })

  it('carries the session in a header if configured', async () => {
    const first = await ask('header')
    const token = `${first.headers['x-session']}`
    expect(cookies(first)).toEqual([])
    for (let count = 0; count < 20; count++) {
      const next = await ask('header', { 'x-session': token })
      expect([servedBy(next), next.headers['x-session']]).toEqual([servedBy(first), undefined])
    }
  })

  it('limits a cookie to the paths of its rule', async () => {
    const paths = ['/a/b', '/b/exact', '/c/x/d']
    const found = await Promise.all(paths.map((path) => ask('paths', {}, path)))
    const attributes = found.map((one) => /; Path=([^;]+)/.exec(cookies(one)[0] ?? '')?.[1])
    expect(attributes).toEqual(['/a', '/b/exact', '/c'])
    expect(new Set(found.map((one) => cookieOf(one).split('=')[0])).size).toBe(3)
  })

  it('stays at its backend if the weights change', async () => {
    const cookie = await waitFor('a session with the first', async () => {
      const response = await ask('split')
      return servedBy(response) === 'a' ? cookieOf(response) : undefined
    })
    running.write('split.yaml', split(0, 1))
    await waitFor('no weight', async () => {
      for (let count = 0; count < 10; count++) {
        if (servedBy(await ask('split')) === 'a') return false
      }
      return true
    })
    expect(await manyServedBy(10, 'split', { cookie })).toEqual(['a'])
  })

  it('moves to another endpoint, and stays there, if its endpoint is gone', async () => {
    const first = await ask('cookie')
    const cookie = cookieOf(first)
    const left = upstreams.filter((_, at) => 'abc'[at] !== servedBy(first))
    running.write('pods.yaml', pods(...left.map((one) => one.port)))
    const moved = await waitFor('another session', async () => {
      const response = await ask('cookie', { cookie })
      return cookies(response).length === 0 ? undefined : response
    })
    expect(servedBy(moved)).not.toBe(servedBy(first))
    const again = await manyServedBy(20, 'cookie', { cookie: cookieOf(moved) })
    expect(again).toEqual([servedBy(moved)])
  })

  it('reports unsupported settings', async () => {
    const refused = await running.condition('HTTPRoute', 'refused', 'Accepted', 'False')
    expect(refused.reason).toBe('UnsupportedValue')
    expect(refused.message).toContain(
      'spec.rules[0].sessionPersistence.sessionName: "a b" is not a name that a cookie can have',
    )
    expect((await ask('refused')).status).toBe(500)
    const models = await running.condition('HTTPRoute', 'models', 'Accepted', 'True')
    expect(models.message).toContain('a provider is chosen for each request')
  })
})
