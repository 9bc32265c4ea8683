/** What a running gateway prints about objects that an edit breaks or repairs. */
import { describe, expect, it } from 'vitest'
import { useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  manifest,
  routeByHost,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const port = await freePort()
const running = useGateway(() => ({
  manifests: [gateway(port), staticBackend('main', 1), routeByHost('shop', toBackend('main'))],
}))
const backend = (name: string) => running.write('more.yaml', manifest(staticBackend(name, 1)))
const count = (text: string): number => running.stderr.split(text).length - 1

describe('sluice run', () => {
  it('prints one line when an edit breaks a route, and one when it is repaired', async () => {
    const broken = 'warning: HTTPRoute default/cart: ResolvedRefs is False: '
    const repaired = 'HTTPRoute default/cart is in order again'
    backend('extra')
    running.write('route.yaml', manifest(routeByHost('cart', toBackend('extra'))))
    const host = hostOf('cart')
    await waitFor('the route', async () => (await running.send(port, { host })).status === 503)
    running.remove('more.yaml')
    await waitFor('the first line', () => count(broken) > 0)
    expect(running.stderr).toMatch(/default\/cart: ResolvedRefs is False: .*default\/extra/)
    backend('extra')
    await waitFor('the second line', () => count(repaired) > 0)
    expect([count(broken), count(repaired)]).toEqual([1, 1])
  })

  it('prints a bounded number of lines when an edit breaks many routes', async () => {
    const routes = (backendOf: (n: number) => string) =>
      manifest(
        ...Array.from({ length: 40 }, (_, n) => routeByHost(`many-${n}`, toBackend(backendOf(n)))),
      )
    running.write(
      'many.yaml',
      routes((n) => `gone-${n}`),
    )
    await waitFor('the rest', () => /3\d more objects have problems/.test(running.stderr))
    const lines = running.stderr.split('\n').filter((line) => line.includes('many-'))
    expect(lines.length).toBeLessThanOrEqual(5)
    running.write(
      'many.yaml',
      routes(() => 'gone'),
    )
    await waitFor('the group', () => / and 39 more: ResolvedRefs is/.test(running.stderr))
  })
})
