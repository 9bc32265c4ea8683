import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SluiceEvent } from '../../events/index.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { Authority } from '../support/certificates.ts'
import { freePort, RunningGateway, sluice } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { shownCertificate } from '../support/tls-client.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

/** A key file is 32 bytes. */
const sharedKey = Buffer.alloc(32, 5)

const route = (host: string) =>
  manifest(httpRoute('app', { hostnames: [host], rules: [{ backendRefs: [toBackend('main')] }] }))

describeWithParts(['nats-server'], 'two standalone gateways that share a log', () => {
  let server: NatsServer
  let upstream: Upstream
  /** The ports of both gateways, which never bind the same address at once. */
  const ports = new Map<RunningGateway, string>()
  let one: RunningGateway
  let two: RunningGateway
  let stopped: RunningGateway
  let port = 0
  let tlsPort = 0
  const authority = new Authority()
  const first = authority.issue(['shop.test'])
  const second = authority.issue(['shop.test'])

  /** A machine of its own, as far as locks and state are concerned; with its own loopback address. */
  const machine = (name: string, address: string, digestKey = sharedKey) => {
    const state = join(server.folder, `state-${name}`)
    mkdirSync(state)
    const listeners = [
      { name: 'http', port, protocol: 'HTTP' },
      {
        name: 'https',
        port: tlsPort,
        protocol: 'HTTPS',
        tls: { certificateRefs: [{ name: 'shop' }] },
      },
    ]
    const key = join(state, 'digest.key')
    writeFileSync(key, digestKey, { mode: 0o600 })
    const gw = new RunningGateway({
      manifests: {
        'base.yaml': manifest(gateway(port, { listeners }), staticBackend('main', upstream.port)),
        'route.yaml': route('first.example'),
        'secret.yaml': manifest(tlsSecret('shop', first)),
      },
      nats: server.url,
      env: { XDG_STATE_HOME: state, SLUICE_LEASE_DURATION: '4s', SLUICE_DIGEST_KEY_FILE: key },
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
    tlsPort = await freePort()
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
    authority.dispose()
  })

  it('[design.replicas] both serve, and each observation is written once', async () => {
    await Promise.all([answers(one, 'first.example'), answers(two, 'first.example')])
    expect(await theHolder()).toBe(one)
    expect(isHolding(two)).toBe(false)
    edit('second.example')
    await Promise.all([answers(one, 'second.example'), answers(two, 'second.example')])
    expect(await versions()).toBe(2)
  })

  const shown = (gw: RunningGateway, { fingerprint }: { fingerprint: string }) =>
    waitFor(`the certificate at ${ports.get(gw)}`, async () => {
      const client = { ca: authority.certificate, servername: 'shop.test' }
      const got = await shownCertificate(tlsPort, client, { host: ports.get(gw) ?? '' }).catch(
        () => undefined,
      )
      return got === fingerprint
    })

  it('[design.replicas] both serve the values of Secrets from their own manifests', async () => {
    await Promise.all([shown(one, first), shown(two, first)])
    for (const gw of [two, one]) gw.write('secret.yaml', manifest(tlsSecret('shop', second)))
    await Promise.all([shown(one, second), shown(two, second)])
    const { stdout } = await sluice('log', '--nats', server.url, '-o', 'json')
    expect(stdout).not.toContain('PRIVATE KEY')
  })

  it('[design.replicas] compare their digests, and report a difference', async () => {
    const many = Array.from({ length: 100 }, (_, n) => staticBackend(`b${n}`, 80))
    one.write('many.yaml', manifest(...many))
    two.write('many.yaml', manifest(...many))
    const checks = async (gw: RunningGateway, result: string) => {
      const [, stats = ''] = /^metrics: http:\/\/[^:]+:(\d+)/m.exec(gw.stderr) ?? []
      const { body } = await gw.send(Number(stats), { path: '/metrics' })
      const line = new RegExp(`^sluice_digest_checks_total\\{result="${result}"\\} (\\d+)`, 'm')
      return Number(line.exec(body)?.[1])
    }
    for (const gw of [one, two]) {
      await waitFor('equal digests', async () => (await checks(gw, 'equal')) > 0)
      expect(await checks(gw, 'different')).toBe(0)
    }
    const log = await openNatsLog({ servers: server.url })
    const taken: SluiceEvent[] = []
    for await (const { event } of log.read()) {
      if (event.type === 'dev.sluice.digest.taken.v1') taken.push(event)
    }
    const last = taken.at(-1)
    if (last?.type !== 'dev.sluice.digest.taken.v1') throw new Error('no digest was taken')
    const data = { ...last.data, replica: 'other', desired: '0000000000000000' }
    await log.append([{ ...last, id: 'forged', data }])
    await log.close()
    for (const gw of [one, two]) {
      await waitFor('word of the difference', () =>
        /this replica and other derived different states/.test(gw.stderr),
      )
    }
  })

  it('[design.replicas] take over from a killed lease holder without losing an edit', async () => {
    await one.kill()
    edit('third.example')
    await answers(two, 'third.example')
    expect(isHolding(two)).toBe(true)
    await one.start()
    await answers(one, 'third.example')
    expect(isHolding(one)).toBe(false)
    expect(await versions()).toBe(3)
  })

  it('[design.replicas] stop writing if the holder was suspended for longer than its lease', async () => {
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

  it('[design.replicas] report a different digest key, and then serve no certificate', async () => {
    const three = await machine('three', '127.0.0.3', Buffer.alloc(32, 6)).start()
    await answers(three, 'fifth.example')
    await waitFor('word of the key', () => /uses a different secret-digest key/.test(three.stderr))
    const client = { ca: authority.certificate, servername: 'shop.test' }
    await expect(shownCertificate(tlsPort, client, { host: '127.0.0.3' })).rejects.toThrow()
    await three.dispose()
  })

  it('[design.replicas] hand over the lease at once on SIGTERM', async () => {
    const holder = await theHolder()
    const other = holder === one ? two : one
    stopped = holder
    await holder.stop()
    edit('sixth.example')
    await answers(other, 'sixth.example')
    expect(isHolding(other)).toBe(true)
  })

  it('drop the proxy of a killed replica that does not return', async () => {
    await stopped.start()
    const there = await waitFor('both proxies', async () => {
      const found = await proxies()
      return found.length === 2 ? found : undefined
    })
    await stopped.kill()
    const holder = stopped === one ? two : one
    const gone = await waitFor('the other to be missed', () =>
      there.find(({ replica }) => holder.stderr.includes(`replica ${replica} sends no heartbeat`)),
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
