import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import { answerTo } from '../support/raw-answer.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream('main')

const request = (path: string, ...fields: string[]) =>
  [`GET ${path} HTTP/1.1`, 'host: a.example.com', 'connection: close', ...fields, '', ''].join(
    '\r\n',
  )

/** A policy for one port of the Gateway. */
function onPort(name: string, port: number, frontend: object) {
  const target = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge', port }
  return policy(name, 'Gateway/edge', { targetRefs: [target], frontend })
}

describe('frontend.forwarded', () => {
  const ports = { replace: 0, append: 0, hops: 0 }
  const running = useGateway(async () => {
    Object.assign(ports, await freePorts('replace', 'append', 'hops'))
    const names = Object.keys(ports) as (keyof typeof ports)[]
    const on = (name: keyof typeof ports, forwarded: object) =>
      onPort(name, ports[name], { forwarded })
    return {
      manifests: [
        gateway(0, {
          listeners: names.map((name) => ({ name, port: ports[name], protocol: 'HTTP' })),
        }),
        staticBackend('main', upstream.port),
        httpRoute('all', { rules: [{ backendRefs: [toBackend('main')] }] }),
        httpRoute('secure', {
          rules: [
            {
              matches: [{ headers: [{ name: 'x-forwarded-proto', value: 'https' }] }],
              backendRefs: [toBackend('main')],
              filters: [
                {
                  type: 'RequestHeaderModifier',
                  requestHeaderModifier: { set: [{ name: 'x-route', value: 'secure' }] },
                },
              ],
            },
          ],
        }),
        on('replace', { headers: 'Replace' }),
        on('append', { headers: 'Append', trustedProxies: ['127.0.0.9', '192.0.2.0/24'] }),
        on('hops', { trustedHops: 2, headers: 'Replace' }),
      ],
    }
  })

  const about = /^(x[-_]forwarded[-_]|x[-_]real[-_]ip|forwarded|x-route)/
  async function received(to: keyof typeof ports, from: string, ...fields: string[]) {
    const answer = await answerTo({ port: ports[to], from }, request('/', ...fields))
    const { headers } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as {
      headers: Record<string, string>
    }
    return Object.fromEntries(Object.entries(headers).filter(([name]) => about.test(name)))
  }

  const forged = [
    'x-forwarded-for: 1.1.1.1',
    'x-forwarded-proto: https',
    'x-forwarded-host: evil.test',
    'x-forwarded-port: 1',
    'X-Forwarded-Client-Cert: By=x',
    'forwarded: for=1.1.1.1',
    'x-real-ip: 1.1.1.1',
    'X_Forwarded_For: 1.1.1.1',
    'x-forwarded_proto: https',
    'X_Real-IP: 1.1.1.1',
  ]

  const own = (to: keyof typeof ports, client: string) => ({
    'x-forwarded-for': client,
    'x-forwarded-host': 'a.example.com',
    'x-forwarded-port': String(ports[to]),
    'x-forwarded-proto': 'http',
    'x-forwarded-scheme': 'http',
    'x-real-ip': client,
  })

  it('replaces what an untrusted client sends, also for routes that match it', async () => {
    expect(await received('replace', '127.0.0.1', ...forged)).toEqual(own('replace', '127.0.0.1'))
    expect(await received('append', '127.0.0.1', ...forged)).toEqual({
      ...own('append', '127.0.0.1'),
      'x-forwarded-for': '1.1.1.1, 127.0.0.1',
    })
  })

  it('adds a trusted proxy to the list, and keeps its other headers', async () => {
    const fields = [
      'x-forwarded-for: 203.0.113.1, 192.0.2.5',
      'x-forwarded-proto: https',
      // From the client of the proxy, which does not know the name.
      'X_Forwarded_For: 1.1.1.1',
    ]
    expect(await received('append', '127.0.0.9', ...fields)).toEqual({
      ...own('append', '203.0.113.1'),
      'x-forwarded-for': '203.0.113.1, 192.0.2.5, 127.0.0.9',
      'x-forwarded-proto': 'https',
      'x-route': 'secure',
    })
    await waitFor('the log', () => running.stdout.includes(' src.addr=203.0.113.1:0 '))
  })

  it('counts trusted hops from the end of the list', async () => {
    const client = async (list: string) =>
      (await received('hops', '127.0.0.1', `x-forwarded-for: ${list}`))['x-forwarded-for']
    expect(await client('6.6.6.6, 203.0.113.1, 192.0.2.5')).toBe('203.0.113.1')
    expect(await client('203.0.113.1, 192.0.2.5')).toBe('203.0.113.1')
    // Fewer entries than hops, and an entry that is not an address.
    expect(await client('192.0.2.5')).toBe('127.0.0.1')
    expect(await client('203.0.113.1, unknown, 192.0.2.5')).toBe('127.0.0.1')
  })
})
