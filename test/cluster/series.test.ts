/** Time series of two proxies in the console of their controller, added up, while the processes restart. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as sendHttp } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SeriesAnswer } from '../../src/past/series/answer.ts'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { gateway, route, TestCluster } from '../support/cluster.ts'
import { ProxyProcess, stablePort } from '../support/cluster-rig.ts'
import { urlIn } from '../support/console-process.ts'
import { ControllerProcess } from '../support/controller.ts'
import { send } from '../support/http-client.ts'
import { staticBackend } from '../support/manifests.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const parts = [...apiServerParts, 'gateway-api-crds', 'nats-server'] as const
const hosts = ['127.0.0.1', '127.0.0.2']

describeWithParts(parts, 'the time series of two proxies', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-collected-'))
  let cluster: TestCluster
  let nats: NatsServer
  let upstream: Upstream
  const started: { dispose(): Promise<unknown> }[] = []
  let port = 0
  /** A controller with a log file, and one of two replicas on NATS. */
  let single: ControllerProcess
  let replicas: ControllerProcess[] = []
  let proxies: ProxyProcess[] = []

  const launch = async (options: object, xdsPort: number) => {
    const controller = new ControllerProcess({
      kubeconfig: cluster.server.kubeconfig,
      args: ['--console-address', '127.0.0.1:0', '--xds-address', `127.0.0.1:${xdsPort}`],
      ...options,
    })
    started.push(controller)
    return controller.start()
  }
  const launchProxy = async (
    at: number,
    controllers: readonly ControllerProcess[],
    name = `edge-${at}`,
  ) => {
    const proxy = new ProxyProcess(folder, {
      addresses: await Promise.all(controllers.map((one) => one.xdsAddress())),
      name,
      args: ['--bind-address', hosts[at] ?? '', '--xds-token-file', join(folder, 'token')],
    })
    started.push(proxy)
    await proxy.start()
    const answer = () => send(port, { address: hosts[at] ?? '', path: '/none' })
    await waitFor('an answer', () =>
      answer().then(
        ({ status }) => status === 404,
        () => false,
      ),
    )
    return proxy
  }
  const sendTo = async (at: number, count: number) => {
    for (let sent = 0; sent < count; sent++) {
      const address = hosts[at] ?? ''
      expect((await send(port, { address, path: '/shop' })).status).toBe(200)
    }
  }

  beforeAll(async () => {
    nats = await startNatsServer()
    upstream = await startUpstream()
    cluster = await new TestCluster(await startApiServer()).install()
    port = await stablePort()
    const { spec, ...rest } = route('shop', 'edge', 'main')
    const backendRefs = [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'main' }]
    const matches = [{ path: { type: 'PathPrefix', value: '/shop' } }]
    await cluster.applyAll([
      staticBackend('main', upstream.port),
      gateway('edge', 'default', { listeners: [{ name: 'http', port, protocol: 'HTTP' }] }),
      { ...rest, spec: { ...(spec as object), hostnames: [], rules: [{ matches, backendRefs }] } },
    ] as never)
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    await cluster.server.request('POST', accounts, { metadata: { name: 'edge' } })
    const issued = await cluster.server.request('POST', `${accounts}/edge/token`, {
      spec: { audiences: ['sluice'] },
    })
    writeFileSync(join(folder, 'token'), issued.body.status.token)
  }, 150_000)

  afterAll(async () => {
    await Promise.all(started.map((one) => one.dispose()))
    await nats?.remove()
    await upstream?.close()
    await cluster?.server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('are added up, survive restarts of both sides, and name a proxy that is missing', async () => {
    const xdsPort = await stablePort()
    const logFile = join(folder, 'events.db')
    single = await launch({ logFile }, xdsPort)
    proxies = await Promise.all([launchProxy(0, [single]), launchProxy(1, [single])])
    await sendTo(0, 3)
    await sendTo(1, 4)
    await shows(single, { requests: 7, proxies: 2, missing: [] })

    await single.stop()
    // The proxies keep what no controller takes.
    await sendTo(0, 5)
    single = await launch({ logFile }, xdsPort)
    await shows(single, { requests: 12, proxies: 2, missing: [] })

    // The last bucket is reported at the end of a process that is stopped, which is not missing.
    await sendTo(0, 2)
    expect(await proxies[0]?.stop()).toBe(0)
    await shows(single, { requests: 14, proxies: 2, missing: [] })
    proxies[0] = await launchProxy(0, [single])
    await sendTo(0, 1)
    await shows(single, { requests: 15, proxies: 2, missing: [] })

    await proxies[1]?.kill()
    await shows(single, { requests: 15, proxies: 2, missing: ['default/edge/edge-1'] })
    await proxies[0]?.stop()
    await single.stop()
  }, 180_000)

  it('are the same in every replica, wherever the proxies are connected, and after all have restarted', async () => {
    const ports = [await stablePort(), await stablePort()]
    const launchAll = () =>
      Promise.all(
        ports.map((xdsPort, at) => launch({ nats: nats.url, name: `replica-${at}` }, xdsPort)),
      )
    replicas = await launchAll()
    proxies = await Promise.all([
      launchProxy(0, replicas, 'edge-2'),
      launchProxy(1, replicas.toReversed(), 'edge-3'),
    ])
    await sendTo(0, 1)
    await sendTo(1, 2)
    for (const one of replicas) await shows(one, { requests: 3, proxies: 2 })
    await Promise.all(proxies.map((one) => one.stop()))
    await Promise.all(replicas.map((one) => one.stop()))
    replicas = await launchAll()
    for (const one of replicas) await shows(one, { requests: 3, proxies: 2 })
  }, 180_000)
})

interface Sums {
  readonly requests: number
  readonly proxies: number
  readonly missing?: readonly string[]
}

/** Waits until the console of a controller shows sums. */
async function shows(controller: ControllerProcess, wanted: Sums): Promise<void> {
  const get = await signIn(controller)
  let found: Sums | undefined
  const isThere = async () => {
    const { series, proxies = 0, missing = [] } = await get()
    const names = [...new Set(missing.map(({ proxy }) => proxy))]
    found = {
      requests: series.find(({ name }) => name === 'default/shop')?.sums.requests ?? 0,
      proxies,
      ...(wanted.missing && { missing: names }),
    }
    return JSON.stringify(found) === JSON.stringify(wanted)
  }
  await waitFor('the sums', isThere, 60_000).catch(() => expect(found).toEqual(wanted))
}

/** Uses the URL that the controller has printed, and returns a function that asks for series. */
async function signIn(controller: ControllerProcess): Promise<() => Promise<SeriesAnswer>> {
  const url = await waitFor('the URL of the console', () => urlIn(controller.stderr))
  const location = await new Promise<string>((resolve, reject) => {
    const sent = sendHttp(url, (response) => resolve(response.headers.location ?? ''))
    sent.on('error', reject).end()
  })
  const authorization = `Bearer ${/#k=(.+)$/.exec(location)?.[1]}`
  // The next sign-in uses the next URL.
  await waitFor('the next URL', () => urlIn(controller.stderr)?.href !== url.href)
  return async () => {
    const response = await fetch(`${url.origin}/api/series?since=1h&by=route`, {
      headers: { authorization },
    })
    return (await response.json()) as SeriesAnswer
  }
}
