import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, RunningGateway, sluice } from '../../src/testing/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  staticBackend,
  toBackend,
} from '../../src/testing/manifests.ts'
import { type NatsServer, startNatsServer } from '../../src/testing/nats-server.ts'
import { describeWithParts } from '../../src/testing/parts.ts'
import { startUpstream, type Upstream } from '../../src/testing/upstream.ts'
import { waitFor } from '../../src/testing/wait-for.ts'

const route = (host: string) =>
  manifest(httpRoute('app', { hostnames: [host], rules: [{ backendRefs: [toBackend('main')] }] }))

describeWithParts(['nats-server'], 'two standalone gateways that share a log', () => {
  let server: NatsServer
  let upstream: Upstream
  /** Of both: they are never bound at once on one address. */
  const ports = new Map<RunningGateway, string>()
  let one: RunningGateway
  let two: RunningGateway
  let stopped: RunningGateway
  let port = 0

  /** A machine of its own, as far as locks and state are concerned; with its own loopback address. */
  const machine = (name: string, address: string) => {
    const state = join(server.folder, `state-${name}`)
    mkdirSync(state)
    const gw = new RunningGateway({
      manifests: {
        'base.yaml': manifest(gateway(port), staticBackend('main', upstream.port)),
        'route.yaml': route('first.example'),
      },
      nats: server.url,
      env: { XDG_STATE_HOME: state, SLUICE_LEASE_DURATION: '2s' },
      args: ['--bind-address', address],
    })
    ports.set(gw, address)
    return gw
  }
  const answers = (gw: RunningGateway, host: string) =>
    gw.sendUntil(
      port,
      { headers: { host }, address: ports.get(gw) ?? '' },
      ({ status }) => status === 200,
    )
  const edit = (host: string) => {
    for (const gw of [one, two]) gw.write('route.yaml', route(host))
  }
  const holds = (gw: RunningGateway) => gw.stderr.lastIndexOf('holding the lease (epoch')
  const isHolding = (gw: RunningGateway) =>
    holds(gw) > gw.stderr.lastIndexOf('no longer holding the lease')
  const theHolder = () =>
    waitFor('a holder of the lease', () => [one, two].find((gw) => isHolding(gw)))
  const versions = async () => {
    const { stdout } = await sluice('log', '--nats', server.url, '-o', 'json')
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
    return lines.filter(
      ({ event }) =>
        event.type === 'dev.sluice.resource.applied.v1' &&
        event.subject.endsWith('.HTTPRoute.default.app'),
    ).length
  }
  interface Line {
    readonly event: { readonly type: string; readonly subject: string }
  }

  interface Proxy {
    readonly proxy: string
    readonly replica: string
    readonly state: string
  }
  const proxies = async () => {
    const { stdout } = await sluice('status', '--nats', server.url, '-o', 'json')
    return (JSON.parse(stdout) as { readonly proxies: readonly Proxy[] }).proxies
  }

  beforeAll(async () => {
    server = await startNatsServer()
    upstream = await startUpstream()
    port = await freePort()
    one = machine('one', '127.0.0.1')
    two = machine('two', '127.0.0.2')
    await one.start()
    await two.start()
  }, 60_000)

  afterAll(async () => {
    one?.signal('SIGCONT')
    await one?.dispose()
    await two?.dispose()
    await upstream?.close()
    await server?.remove()
  })

  it('[design.replicas] both serve, and what both see is written once', async () => {
    await Promise.all([answers(one, 'first.example'), answers(two, 'first.example')])
    expect(await theHolder()).toBe(one)
    expect(isHolding(two)).toBe(false)
    edit('second.example')
    await Promise.all([answers(one, 'second.example'), answers(two, 'second.example')])
    expect(await versions()).toBe(2)
  })

  it('[design.replicas] the other one takes over when the holder is killed, and has missed nothing', async () => {
    await one.kill()
    edit('third.example')
    await answers(two, 'third.example')
    expect(isHolding(two)).toBe(true)
    await one.start()
    await answers(one, 'third.example')
    expect(isHolding(one)).toBe(false)
    expect(await versions()).toBe(3)
  })

  it('[design.replicas] a holder that was stopped for longer than its lease writes no more', async () => {
    two.signal('SIGSTOP')
    edit('fourth.example')
    await answers(one, 'fourth.example')
    expect(isHolding(one)).toBe(true)
    two.signal('SIGCONT')
    await answers(two, 'fourth.example')
    await waitFor('the end of the old term', () => !isHolding(two))
    edit('fifth.example')
    await Promise.all([answers(one, 'fifth.example'), answers(two, 'fifth.example')])
    expect(await versions()).toBe(5)
    const replayed = await sluice('replay', '--nats', server.url)
    expect(replayed.stdout).toMatch(/of which 0 differ/)
    // Its proxy was taken for gone with it.
    const both = await waitFor('both proxies', async () => {
      const found = await proxies()
      return found.length === 2 ? found : undefined
    })
    expect(new Set(both.map(({ replica }) => replica)).size).toBe(2)
  })

  it('[design.replicas] hands the lease over at once when the holder is told to stop', async () => {
    const holder = await theHolder()
    const other = holder === one ? two : one
    stopped = holder
    await holder.stop()
    edit('sixth.example')
    await answers(other, 'sixth.example')
    expect(isHolding(other)).toBe(true)
  })

  it('forgets the proxy of a replica that was killed and does not come back', async () => {
    await stopped.start()
    const there = await waitFor('both proxies', async () => {
      const found = await proxies()
      return found.length === 2 ? found : undefined
    })
    await stopped.kill()
    const holder = stopped === one ? two : one
    const gone = await waitFor('the other to be missed', () =>
      there.find(({ replica }) =>
        holder.stderr.includes(`replica ${replica} gives no sign of life`),
      ),
    )
    const [left] = await waitFor('one proxy', async () => {
      const found = await proxies()
      return found.length === 1 ? found : undefined
    })
    expect(left?.replica).toBe(there.find((one) => one !== gone)?.replica)
    const { stdout } = await sluice('log', '--nats', server.url, '-o', 'json')
    expect(stdout).toMatch(/"reason":"its replica \S+_[0-9a-f]{8} is gone"/)
    const table = await sluice('status', '--nats', server.url)
    expect(table.stdout).toMatch(/^PROXY +GATEWAY +REPLICA/m)
    expect(table.stdout).toContain(left?.replica)
  })
})
