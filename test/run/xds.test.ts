import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ClusterRig, stablePort } from '../support/cluster-rig.ts'
import { startEndpointPicker } from '../support/endpoint-picker.ts'
import { sluice } from '../support/gateway.ts'
import { keepAliveAgent, send } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  inferencePool,
  manifest,
  pod,
  service,
  staticBackend,
  toBackend,
  toPool,
} from '../support/manifests.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

// Several processes start in each of these.
vi.setConfig({ testTimeout: 90_000 })

let a: Upstream
let b: Upstream
beforeAll(async () => {
  ;[a, b] = await Promise.all([startUpstream('a'), startUpstream('b')])
  return async () => void (await Promise.all([a.close(), b.close()]))
})

let rig: ClusterRig
afterEach(() => rig.dispose())

const age = { creationTimestamp: '2026-01-01T00:00:00Z' }

const routeTo = (backend: string, name = 'app', rule: object = {}) =>
  manifest(httpRoute(name, { rules: [{ backendRefs: [toBackend(backend)], ...rule }] }, age))

const toModel = { backendRefs: [toPool('model')] }

const dated = (object: Readonly<Record<string, unknown>>) => ({
  ...object,
  metadata: { ...(object.metadata as object), ...age },
})

function makeRig(port: number, more: Record<string, string> = {}): void {
  const objects = [gateway(port), staticBackend('a', a.port), staticBackend('b', b.port)]
  rig = new ClusterRig({
    'base.yaml': manifest(...objects.map(dated)),
    'route.yaml': routeTo('a'),
    ...more,
  })
}

/** A Gateway on a free port, one control plane, one proxy that is ready. */
async function startAll(more: Record<string, string> = {}) {
  const port = await stablePort()
  makeRig(port, more)
  const plane = await rig.controlPlane()
  const proxy = await rig.proxy({ name: 'edge-1', addresses: [plane.address] }).start()
  return { port, plane, proxy }
}

const upstreamOf = async (port: number): Promise<string | undefined> => {
  const response = await send(port).catch(() => undefined)
  return /"upstream":"(\w+)"/.exec(response?.body ?? '')?.[1]
}

const served = (port: number, by: string) =>
  waitFor(`an answer of ${by}`, async () => (await upstreamOf(port)) === by)

/** Sends requests one after another until stopped; returns the statuses. */
function keepSending(port: number) {
  const seen = new Map<number | string, number>()
  const agent = keepAliveAgent(1)
  let isStopped = false
  const loop = (async () => {
    while (!isStopped) {
      const status = await send(port, { agent }).then(
        (response) => response.status,
        (error: Error) => error.message,
      )
      seen.set(status, (seen.get(status) ?? 0) + 1)
    }
  })()
  return async () => {
    isStopped = true
    await loop
    agent.destroy()
    return [...seen.keys()]
  }
}

describe('a proxy of a controller', () => {
  it("serves the controller's configuration and its changes, and the Gateway is Programmed", async () => {
    const { port, plane } = await startAll()
    expect(await upstreamOf(port)).toBe('a')
    const { message } = await plane.condition('Gateway', 'edge', 'Programmed', 'True')
    expect(message).toBe('')
    expect((await plane.status('Gateway', 'edge'))?.addresses).toEqual([
      { type: 'IPAddress', value: '127.0.0.1' },
    ])
    rig.write('route.yaml', routeTo('b'))
    await served(port, 'b')
    rig.remove('route.yaml')
    await waitFor('404', async () => (await send(port)).status === 404)
  })

  it('[inference.pool] receives an InferencePool with its Pods, and asks its picker', async () => {
    const picker = await startEndpointPicker(() => ({ endpoints: `127.0.0.1:${b.port}` }))
    const objects = [
      inferencePool('model', 'model', [a.port, b.port], { name: 'picker' }),
      pod('model-0', 'model', '127.0.0.1'),
      ...service('picker', [picker.port], { appProtocol: 'kubernetes.io/h2c' }),
    ]
    const { port } = await startAll({ 'pool.yaml': manifest(...objects.map(dated)) })
    rig.write('route.yaml', manifest(httpRoute('app', { rules: [toModel] }, age)))
    await served(port, 'b')
    await picker.close()
  })

  it('keeps serving without the controller, and resumes with the differences only', async () => {
    const { port, plane, proxy } = await startAll()
    const stop = keepSending(port)
    await plane.kill()
    await proxy.printed(/lost the controller/)
    rig.write('route.yaml', routeTo('b'))
    await plane.start()
    await served(port, 'b')
    expect(await stop()).toEqual([200])
    // The route, the backend that it leads to now, and the removal of the other.
    expect(await plane.metric('xds_resources_total')).toBe(3)
    await plane.condition('HTTPRoute', 'app', 'Accepted', 'True')
    await plane.condition('Gateway', 'edge', 'Programmed', 'True')
  })

  it('serves after a kill without a controller, from a file that only its owner can read', async () => {
    const { port, plane, proxy } = await startAll()
    await proxy.saved()
    expect(statSync(proxy.lastGood).mode & 0o777).toBe(0o600)
    expect(statSync(proxy.stateDir).mode & 0o777).toBe(0o700)
    await proxy.kill()
    await plane.kill()
    await proxy.start()
    expect(await upstreamOf(port)).toBe('a')
    await plane.start()
    await proxy.printed(/connected to the controller/)
    await waitFor('an answer', async () => (await plane.metric('xds_acks_total')) > 0)
    expect(await plane.metric('xds_resources_total')).toBe(0)
  })

  it('moves a damaged file aside and fetches everything again', async () => {
    const { port, plane, proxy } = await startAll()
    await proxy.saved()
    await proxy.stop()
    const bytes = readFileSync(proxy.lastGood)
    bytes[bytes.length - 3] = (bytes[bytes.length - 3] ?? 0) ^ 1
    writeFileSync(proxy.lastGood, bytes)
    await proxy.start()
    await proxy.printed(/digest does not fit.*last-good\.aside-1/)
    expect(await upstreamOf(port)).toBe('a')
    expect(await plane.metric('xds_rejects_total')).toBe(0)
  })

  it('moves to another replica without a resend, since versions are equal', async () => {
    const port = await stablePort()
    makeRig(port)
    const [one, two] = [await rig.controlPlane(), await rig.controlPlane()]
    const addresses = [one.address, two.address]
    const proxy = await rig.proxy({ name: 'edge-1', addresses }).start()
    expect(await one.metric('xds_proxies')).toBe(1)
    const stop = keepSending(port)
    await one.kill()
    await waitFor('an answer', async () => (await two.metric('xds_acks_total')) > 0)
    expect(await two.metric('xds_resources_total')).toBe(0)
    rig.write('route.yaml', routeTo('b'))
    await served(port, 'b')
    expect(await stop()).toEqual([200])
    expect(await proxy.metric('controller_connections_total')).toBe(2)
  })

  it('reports a port in use, applies the rest, and recovers once the port is free', async () => {
    const [free, taken] = [await stablePort(), await stablePort()]
    const blocker = createServer()
    await new Promise<void>((resolve) => blocker.listen(taken, '127.0.0.1', resolve))
    const listeners = [
      { name: 'http', port: free, protocol: 'HTTP' },
      { name: 'second', port: taken, protocol: 'HTTP' },
    ]
    makeRig(free, {
      'base.yaml': manifest(
        gateway(free, { listeners }),
        staticBackend('a', a.port),
        staticBackend('b', b.port),
      ),
    })
    const plane = await rig.controlPlane()
    rig.proxy({ name: 'edge-1', addresses: [plane.address] }).launch()
    await served(free, 'a')
    const failed = await plane.condition('Gateway', 'edge', 'Programmed', 'False', /port/)
    expect(failed).toMatchObject({ reason: 'NoResources' })
    await new Promise((resolve) => blocker.close(resolve))
    await plane.condition('Gateway', 'edge', 'Programmed', 'True')
    await served(taken, 'a')
  })
})

describe('the condition Programmed of a Gateway', () => {
  it('waits for all proxies, names what one rejects, and drops a killed one', async () => {
    const [port, second] = [await stablePort(), await stablePort()]
    makeRig(port)
    const plane = await rig.controlPlane()
    const addresses = [plane.address]
    await rig.proxy({ name: 'edge-1', addresses }).start()
    // On one machine the second proxy cannot have the same port.
    const other = rig.proxy({ name: 'edge-2', addresses }).launch()
    await plane.condition('Gateway', 'edge', 'Programmed', 'False', /proxy edge-2: /)
    await other.kill()
    const listeners = [{ name: 'http', port: second, protocol: 'HTTP' }]
    rig.write(
      'base.yaml',
      manifest(...[gateway(second, { listeners }), staticBackend('a', a.port)].map(dated)),
    )
    await served(second, 'a')
    await plane.condition('Gateway', 'edge', 'Programmed', 'True')
  })

  it('becomes False after a time without proxies', async () => {
    const port = await stablePort()
    makeRig(port)
    const plane = await rig.controlPlane({ aheadMs: 29_500 })
    const proxy = rig.proxy({ name: 'edge-1', addresses: [plane.address] })
    await plane.condition('Gateway', 'edge', 'Programmed', 'False', /no proxy has acknowledged/)
    await proxy.start()
    await plane.condition('Gateway', 'edge', 'Programmed', 'True')
    await proxy.stop()
    await plane.condition('Gateway', 'edge', 'Programmed', 'False', /^no proxy is connected$/)
    await proxy.start()
    await plane.condition('Gateway', 'edge', 'Programmed', 'True')
  })

  it('drops a proxy that hangs, and counts it again once it resumes', async () => {
    const port = await stablePort()
    makeRig(port)
    const plane = await rig.controlPlane({ ackTimeoutMs: 500 })
    const addresses = [plane.address]
    await rig.proxy({ name: 'edge-1', addresses }).start()
    const args = ['--bind-address', '127.0.0.2']
    const still = await rig.proxy({ name: 'edge-2', addresses, args }).start()
    still.signal('SIGSTOP')
    const more = [
      gateway(port, { infrastructure: { labels: { a: 'b' } } }),
      staticBackend('b', b.port),
    ]
    rig.write('base.yaml', manifest(...more.map(dated)))
    rig.write('route.yaml', routeTo('b'))
    await plane.printed(/notice: proxy edge-2 was dropped: it has not answered/)
    await plane.condition('Gateway', 'edge', 'Programmed', 'True')
    await served(port, 'b')
    still.signal('SIGCONT')
    await waitFor('the proxy that goes on', async () => {
      const response = await send(port, { address: '127.0.0.2' }).catch(() => undefined)
      return response?.body.includes('"upstream":"b"')
    })
  })
})

describe('sluice proxy', () => {
  it('reports every missing or wrong setting', async () => {
    rig = new ClusterRig({})
    const none = await sluice('proxy')
    expect(none.code).toBe(2)
    expect(none.stderr).toMatch(/--xds-address: is required \(or SLUICE_XDS_ADDRESS\)/)
    expect(none.stderr).toMatch(/--gateway: is required/)
    const wrong = await sluice('proxy', '--xds-address', 'here', '--gateway', 'edge')
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toMatch(/--xds-address: "here" is not `host:port`/)
    expect(wrong.stderr).toMatch(/--gateway: "edge" is not `namespace\/name`/)
  })

  it('serves with a warning if the state folder cannot be used', async () => {
    const port = await stablePort()
    makeRig(port)
    const { address } = await rig.controlPlane()
    const file = `${rig.folder}/file`
    writeFileSync(file, '')
    const args = ['--state-dir', `${file}/state`]
    const options = { name: 'edge-1', addresses: [address], isKept: false, args }
    const proxy = await rig.proxy(options).start()
    await proxy.printed(/--state-dir: .*file\/state cannot be used: /)
    expect((await send(port)).status).toBe(200)
    await waitFor('a failed save', async () => {
      return (await proxy.metric('last_good_save_failures_total')) > 0
    })
  })

  it('says that the controller has no listener of an unknown Gateway', async () => {
    const { plane } = await startAll()
    const addresses = [plane.address]
    const proxy = rig.proxy({ name: 'none-1', addresses, gateway: 'default/nope' }).launch()
    await proxy.printed(/the controller has no listener of Gateway default\/nope/)
  })

  it('refuses a state folder that another proxy uses', async () => {
    rig = new ClusterRig({})
    const addresses = [`127.0.0.1:${await stablePort()}`]
    const proxy = rig.proxy({ name: 'edge-1', addresses }).launch()
    await proxy.printed(/cannot be used: UNAVAILABLE/)
    const where = ['--xds-address', addresses[0] ?? '', '--gateway', 'default/edge']
    const second = await sluice('proxy', ...where, '--state-dir', proxy.stateDir)
    expect(second).toMatchObject({ code: 2, stderr: expect.stringMatching(/in use by another/) })
  })
})
