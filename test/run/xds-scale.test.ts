import { afterEach, describe, expect, it, vi } from 'vitest'
import { XdsServer } from '../../src/control/xds/server.ts'
import type { RouteResource, VersionedResource } from '../../src/ground/model/resources.ts'
import { ClusterRig, stablePort } from '../support/cluster-rig.ts'
import { send } from '../support/http-client.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'
import { startUpstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

// Several processes start in each of these.
vi.setConfig({ testTimeout: 90_000 })

const disposables: (() => unknown)[] = []
afterEach(async () => {
  for (const dispose of disposables.splice(0).reverse()) await dispose()
})

function newRig(manifests: Record<string, string> = {}): ClusterRig {
  const rig = new ClusterRig(manifests)
  disposables.push(() => rig.dispose())
  return rig
}

const edge = { namespace: 'default', name: 'edge' }
const listener = 'listener/Gateway/default/edge/http'

const listenerOn = (port: number): VersionedResource => ({
  version: '1',
  resource: {
    type: 'listener',
    key: listener,
    gateway: edge,
    owner: { kind: 'Gateway', ...edge },
    section: 'http',
    port,
    protocol: 'HTTP',
    hostname: '',
  },
})

/** A route that answers by itself, so that no upstream is needed. */
function route(n: number, statusCode = 302): VersionedResource {
  const name = `r${n}`
  const resource: RouteResource = {
    type: 'route',
    key: `route/HTTPRoute/default/${name}/0`,
    route: { kind: 'HTTPRoute', namespace: 'default', name },
    created: n,
    order: 0,
    ruleIndex: 0,
    attachments: [{ listener, hostnames: [`${name}.example.com`] }],
    matches: [{ path: { type: 'PathPrefix', value: '/' }, headers: [], query: [] }],
    filters: [{ type: 'redirect', statusCode }],
    backends: [],
  }
  return { version: String(statusCode), resource }
}

describe('ten thousand routes', () => {
  it('reach every worker in parts, and are not sent again after a worker dies', async () => {
    const rig = newRig()
    const port = await stablePort()
    const acked: number[] = []
    const nothing = () => undefined
    const server = await new XdsServer({
      address: `127.0.0.1:${await stablePort()}`,
      reports: {
        connected: nothing,
        disconnected: nothing,
        onReject: nothing,
        onRecover: nothing,
        onAck: (_, sequence) => acked.push(sequence),
      },
    }).start()
    disposables.push(() => server.close())
    const routes = Array.from({ length: 10_000 }, (_, n) => route(n))
    server.publish({ sequence: 1, upserted: [listenerOn(port), ...routes], removed: [] })
    const args = ['--workers', '2']
    const proxy = await rig.proxy({ name: 'edge-1', addresses: [server.address], args }).start()
    const statusOf = async (n: number) => (await send(port, { host: `r${n}.example.com` })).status
    for (const n of [0, 4_999, 9_999]) expect(await statusOf(n)).toBe(302)
    const figure = (name: string) =>
      Number(new RegExp(`^sluice_${name} (\\d+)$`, 'm').exec(server.metrics())?.[1])
    expect(figure('xds_responses_total')).toBeGreaterThan(1)
    expect(figure('xds_resources_total')).toBe(10_001)
    server.publish({ sequence: 2, upserted: [route(4_999, 301)], removed: [] })
    await waitFor('the change', async () => (await statusOf(4_999)) === 301)
    expect(figure('xds_resources_total')).toBe(10_002)
    await proxy.saved()
    await proxy.stop()
    await proxy.start()
    const before = acked.length
    await waitFor('the answer', () => acked.length > before || acked.at(-1) === 2)
    await proxy.printed(/connected to the controller/)
    for (const n of [0, 4_999, 9_999]) expect(await statusOf(n)).toBe(n === 4_999 ? 301 : 302)
    expect(figure('xds_resources_total')).toBe(10_002)
  })
})

describe('processes that die during many changes', () => {
  it('cause no failed request at the surviving proxy, and the states converge', async () => {
    const upstream = await startUpstream('a')
    disposables.push(() => upstream.close())
    const port = await stablePort()
    const at = { creationTimestamp: '2026-01-01T00:00:00Z' }
    const routes = (n: number) =>
      manifest(
        httpRoute('app', { rules: [{ backendRefs: [toBackend('a')] }] }, at),
        httpRoute(
          'last',
          {
            hostnames: ['last.test'],
            rules: [
              {
                filters: [{ type: 'RequestRedirect', requestRedirect: { hostname: `n${n}.test` } }],
              },
            ],
          },
          at,
        ),
      )
    const rig = newRig({
      'base.yaml': manifest(gateway(port), staticBackend('a', upstream.port)),
      'routes.yaml': routes(0),
    })
    const plane = await rig.controlPlane()
    const addresses = [plane.address]
    const alive = await rig.proxy({ name: 'alive', addresses }).start()
    const args = ['--bind-address', '127.0.0.2']
    const mortal = await rig.proxy({ name: 'mortal', addresses, args }).start()
    const seen = new Set<number | string>()
    let isOver = false
    const traffic = (async () => {
      while (!isOver) {
        seen.add(await send(port).then(({ status }) => status, String))
      }
    })()
    const changes = 120
    for (let n = 1; n <= changes; n++) {
      rig.write('routes.yaml', routes(n))
      if (n === 30) await mortal.kill()
      if (n === 50) mortal.launch()
      if (n === 70) await plane.kill()
      if (n === 90) await plane.start()
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const target = async (address: string) =>
      (await send(port, { host: 'last.test', address }).catch(() => undefined))?.headers.location
    for (const address of ['127.0.0.1', '127.0.0.2']) {
      await waitFor(`the last change at ${address}`, async () =>
        (await target(address))?.startsWith(`http://n${changes}.test`),
      )
    }
    isOver = true
    await traffic
    expect([...seen]).toEqual([200])
    await plane.condition('Gateway', 'edge', 'Programmed', 'True', /^$/)
    expect(await plane.metric('xds_proxies')).toBe(2)
    expect(alive.hasEnded).toBe(false)
  })
})
