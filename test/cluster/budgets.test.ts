/** Budgets of several proxies and replicas: what all of them admit together, also when some of them die. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SluiceEvent } from '../../events/index.ts'
import { LedgerFold } from '../../src/control/ledger/ledger-fold.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { gateway, route, TestCluster } from '../support/cluster.ts'
import { ProxyProcess, stablePort } from '../support/cluster-rig.ts'
import { ControllerProcess } from '../support/controller.ts'
import { send } from '../support/http-client.ts'
import { budget, staticBackend } from '../support/manifests.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const parts = [...apiServerParts, 'gateway-api-crds', 'nats-server'] as const
const hosts = ['127.0.0.1', '127.0.0.2']

describeWithParts(parts, 'a budget that two proxies share, through two replicas', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-budgets-'))
  let cluster: TestCluster
  let nats: NatsServer
  let upstream: Upstream
  let replicas: ControllerProcess[] = []
  let proxies: ProxyProcess[] = []
  let port = 0
  let begunAt = 0

  const launchProxy = async (at: number) => {
    const addresses = await Promise.all(replicas.map((one) => one.xdsAddress()))
    return new ProxyProcess(folder, {
      // Each proxy prefers a replica of its own.
      addresses: at === 0 ? addresses : addresses.toReversed(),
      name: `edge-${at}`,
      args: ['--bind-address', hosts[at] ?? '', '--xds-token-file', join(folder, 'token')],
    }).start()
  }
  const budgetRoute = (name: string, amount: number) => {
    const backendRefs = [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'main' }]
    const { spec, ...rest } = route(name, 'edge', 'main')
    return [
      {
        ...rest,
        spec: { ...(spec as object), hostnames: [`${name}.test`], rules: [{ backendRefs }] },
      },
      {
        ...budget(name, `HTTPRoute/${name}`, {
          each: 'request.headers["x-user"]',
          limit: { unit: 'Requests', amount: `${amount}` },
          window: { unit: 'Month' },
        }),
        metadata: { name, namespace: 'default' },
      },
    ]
  }

  beforeAll(async () => {
    nats = await startNatsServer()
    upstream = await startUpstream()
    cluster = await new TestCluster(await startApiServer({ isAudited: true })).install()
    port = await stablePort()
    const listeners = [
      { name: 'http', port, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } },
    ]
    await cluster.applyAll([
      staticBackend('main', upstream.port),
      gateway('edge', 'default', { listeners }),
      ...budgetRoute('calm', 300),
      ...budgetRoute('wild', 400),
    ] as never)
    replicas = await Promise.all(
      ['a', 'b'].map((name) =>
        new ControllerProcess({
          kubeconfig: cluster.server.kubeconfig,
          nats: nats.url,
          name,
        }).start(),
      ),
    )
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    await cluster.server.request('POST', accounts, { metadata: { name: 'edge' } })
    const issued = await cluster.server.request('POST', `${accounts}/edge/token`, {
      spec: { audiences: ['sluice'] },
    })
    writeFileSync(join(folder, 'token'), issued.body.status.token)
    proxies = await Promise.all([launchProxy(0), launchProxy(1)])
    for (const address of hosts) {
      await waitFor('an answer', async () => {
        const { status } = await send(port, {
          address,
          headers: { host: 'calm.test', 'x-user': 'probe' },
        })
        return status === 200
      })
    }
    begunAt = Date.now()
  }, 150_000)

  afterAll(async () => {
    await Promise.all(proxies.map((one) => one.stop()))
    await Promise.all(replicas.map((one) => one.dispose()))
    await nats?.remove()
    await upstream?.close()
    await cluster?.server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Sends requests to both proxies until each says that the budget is exhausted. Returns how many were admitted. */
  async function spendAll(
    name: string,
    user: string,
    onRequest: (count: number) => void = () => undefined,
  ) {
    let admitted = 0
    let sent = 0
    const texts = new Set<string>()
    const clients = hosts.flatMap((address) => [address, address, address, address])
    await Promise.all(
      clients.map(async (address) => {
        for (let refusals = 0; refusals < 5; ) {
          onRequest(++sent)
          const headers = { host: `${name}.test`, 'x-user': user }
          const response = await send(port, { address, headers }).catch(() => undefined)
          if (response?.status === 200) admitted++
          // An allowance that is missing comes soon, and a proxy that was killed is started again.
          else if (response?.status === 429 && response.body.includes('exhausted')) {
            refusals++
            texts.add(response.body.slice(0, response.body.indexOf(';')))
          } else await new Promise((resolve) => setTimeout(resolve, 100))
        }
      }),
    )
    return { admitted, texts: [...texts] }
  }

  it('admits exactly its amount for each value, and then both proxies refuse', async () => {
    for (const user of ['ada', 'bob']) {
      expect(await spendAll('calm', user)).toEqual({
        admitted: 300,
        texts: ['budget default/calm of 300 requests per month is exhausted'],
      })
    }
  }, 120_000)

  it('has a status with what is spent, which is written a few times and never logged', async () => {
    const { spent, values, exhausted, highest, resetsAt, conditions } = await waitFor(
      'the status of calm',
      async () => {
        const status = (await cluster.get('GatewayBudget', 'calm')).status
        return status?.exhausted === 2 ? status : undefined
      },
    )
    expect({ spent, values, exhausted }).toEqual({ spent: '602', values: 3, exhausted: 2 })
    const all = { limit: '300', spent: '300', remaining: '0' }
    expect(highest.slice(0, 2)).toEqual([
      { value: 'ada', ...all },
      { value: 'bob', ...all },
    ])
    expect(highest[2]).toMatchObject({ value: 'probe', spent: '2', remaining: '298' })
    expect(resetsAt).toMatch(/^20\d\d-\d\d-01T00:00:00Z$/)
    expect(conditions).toMatchObject([{ type: 'Accepted' }, { type: 'Attached' }])
    // 602 requests cause a write for conditions, and one for spend every 10 seconds.
    const writes = readFileSync(cluster.server.auditLog, 'utf8')
      .split('\n')
      .filter((line) => line.includes('/gatewaybudgets/calm/status'))
    expect(writes.length).toBeGreaterThan(1)
    expect(writes.length).toBeLessThan(5 + (Date.now() - begunAt) / 10_000)
    const log = await openNatsLog({ servers: nats.url })
    const observed = (await Array.fromAsync(log.read())).filter(
      ({ event }) => event.subject.includes('GatewayBudget') && event.subject.includes('calm'),
    )
    await log.close()
    expect(observed.map(({ event }) => event.type)).toEqual([
      'dev.sluice.resource.applied.v1',
      'dev.sluice.conditions.decided.v1',
    ])
  }, 60_000)

  it('admits exactly its amount while a replica is killed', async () => {
    let killed: Promise<void> | undefined
    const { admitted } = await spendAll('wild', 'cleo', (count) => {
      if (count === 100) killed = replicas[0]?.kill()
    })
    await killed
    expect(admitted).toBe(400)
  }, 120_000)

  it('gives the rest of a stopped proxy to the other one, and loses no charge of it', async () => {
    let stopped: Promise<unknown> | undefined
    const { admitted } = await spendAll('wild', 'dora', (count) => {
      if (count === 100) {
        stopped = (async () => {
          await proxies[1]?.stop()
          proxies[1] = await launchProxy(1)
        })()
      }
    })
    await stopped
    expect(admitted).toBe(400)
  }, 120_000)

  it('has a ledger whose fold gives the same balances', async () => {
    const log = await openNatsLog({ servers: nats.url, log: 'ledger' })
    const fold = new LedgerFold()
    const events: SluiceEvent[] = []
    for await (const recorded of log.read()) {
      fold.apply(recorded)
      events.push(recorded.event)
    }
    await log.close()
    const of = (name: string) =>
      [...fold.budgets.values()].find((one) => one.definition.name === name)
    expect(of('default/calm')?.charged).toBe(602n)
    expect(of('default/wild')?.charged).toBe(800n)
    const reports = events.flatMap((event) =>
      event.type === 'dev.sluice.budget.charged.v1' && event.data.charges.length > 0
        ? [`${event.data.holder} ${event.data.sequence}`]
        : [],
    )
    expect(new Set(reports).size).toBe(reports.length)
  })
})
