import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const port = await freePort()
const upstream = useUpstream('main')
const delays = {
  fixed: { duration: '300ms' },
  computed: { duration: 'duration(request.headers["x-wait"])' },
  number: { duration: 'int(request.headers["x-wait"])' },
  refused: { duration: 'no such expression' },
} as const
type Name = keyof typeof delays
const names = Object.keys(delays) as Name[]
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    ...names.map((name) =>
      httpRoute(name, {
        hostnames: [`${name}.example.com`],
        rules: [{ backendRefs: [toBackend('main')] }],
      }),
    ),
    ...names.map((name) => policy(name, `HTTPRoute/${name}`, { traffic: { delay: delays[name] } })),
  ],
}))

/** Sends a request and returns how long the response took, in milliseconds. */
async function timeOf(name: Name, headers: Record<string, string> = {}): Promise<number> {
  const begun = performance.now()
  const { status } = await running.send(port, { host: `${name}.example.com`, headers })
  expect(status).toBe(200)
  return performance.now() - begun
}

describe('traffic.delay', () => {
  it('lets a request wait for a fixed time', async () => {
    expect(await timeOf('fixed')).toBeGreaterThanOrEqual(299)
  })

  it('lets a request wait for what an expression gives: a duration, or milliseconds', async () => {
    expect(await timeOf('computed', { 'x-wait': '0.4s' })).toBeGreaterThanOrEqual(399)
    expect(await timeOf('number', { 'x-wait': '400' })).toBeGreaterThanOrEqual(399)
  })

  it('lets no request wait if the expression fails, or gives no time', async () => {
    await timeOf('computed', { 'x-wait': 'long' })
    await timeOf('number')
    await timeOf('number', { 'x-wait': '-5' })
  })

  it('forgets a request whose client leaves', async () => {
    const headers = { host: 'number.example.com', 'x-wait': '3600000' }
    const left = request({ host: '127.0.0.1', port, path: '/left', headers })
    left.on('error', () => {})
    left.end()
    await once(left, 'finish')
    left.destroy()
    await waitFor('the end of the request', () => running.stdout.includes('/left'))
    expect(upstream.received.some(({ path }) => path === '/left')).toBe(false)
  })

  it('is reported and left out if its expression is invalid', async () => {
    await timeOf('refused')
    const status = await waitFor('the status', () => running.status('GatewayPolicy', 'refused'))
    expect(JSON.stringify(status)).toContain('spec.traffic.delay.duration')
  })
})
