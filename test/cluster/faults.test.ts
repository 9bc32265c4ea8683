import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  KubeClient,
  KubeError,
  type KubeList,
  type KubeObject,
  openCluster,
} from '../../src/control/kube/index.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { gateway, route, TestCluster, type TestObject } from '../support/cluster.ts'
import { ProxyProcess, stablePort } from '../support/cluster-rig.ts'
import { ControllerProcess } from '../support/controller.ts'
import { allConditions, type Status } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import { staticBackend } from '../support/manifests.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const parts = [...apiServerParts, 'gateway-api-crds', 'nats-server'] as const

/** A route of the Gateway to the backend, which is on loopback: no EndpointSlice may be there. */
function routeTo(name: string): TestObject {
  const { spec, ...rest } = route(name, 'edge', 'shop')
  const backendRefs = [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'shop' }]
  return { ...rest, spec: { ...(spec as object), rules: [{ backendRefs }] } }
}

/** Every version of every object of a kind that a client of the API server sees. */
class History {
  readonly versions = new Map<string, KubeObject[]>()
  readonly #stop = new AbortController()

  constructor(kubeconfig: string, plural: 'httproutes' | 'gateways') {
    const path = `apis/gateway.networking.k8s.io/v1/${plural}`
    void this.#follow(new KubeClient(openCluster(kubeconfig)), path)
  }

  async #follow(client: KubeClient, path: string): Promise<void> {
    let resourceVersion: string | undefined = '0'
    while (!this.#stop.signal.aborted) {
      try {
        for await (const { type, object } of client.watch(
          path,
          { resourceVersion },
          this.#stop.signal,
        )) {
          resourceVersion = object.metadata.resourceVersion
          if (type !== 'BOOKMARK') this.#see(object)
        }
      } catch (error) {
        if (error instanceof KubeError && error.isExpired) {
          const list = await client.get<KubeList>(path).catch(() => undefined)
          for (const object of list?.items ?? []) this.#see(object)
          resourceVersion = list?.metadata.resourceVersion ?? resourceVersion
        }
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  }

  #see(object: KubeObject): void {
    const { name, resourceVersion } = object.metadata
    const known = this.versions.get(name) ?? []
    if (known.at(-1)?.metadata.resourceVersion === resourceVersion) return
    this.versions.set(name, [...known, object])
  }

  /** Status of the condition Accepted in each version, runs of the same left out. */
  accepted(name: string): string[] {
    return this.#runsOf(name, 'Accepted')
  }

  /** The same of Programmed, of the object and each of its listeners. */
  programmed(name: string): string[] {
    return this.#runsOf(name, 'Programmed')
  }

  #runsOf(name: string, wanted: string): string[] {
    const all = (this.versions.get(name) ?? []).map(({ status }) => {
      const found = allConditions(status as Status).filter(({ type }) => type === wanted)
      return found.map((one) => one.status).join(' ') || 'none'
    })
    return all.filter((one, at) => one !== all[at - 1])
  }

  /** Number of versions beyond the first. */
  writes(name: string): number {
    return (this.versions.get(name)?.length ?? 0) - 1
  }

  stop(): void {
    this.#stop.abort()
  }
}

describeWithParts(parts, 'replicas and proxies through faults', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-faults-'))
  let cluster: TestCluster
  let nats: NatsServer
  let upstream: Upstream
  let replicas: ControllerProcess[] = []
  let proxy: ProxyProcess
  let history: History
  let gateways: History
  let port = 0
  let sent = 0
  const failures: string[] = []
  let isSending = true
  let sending: Promise<void> = Promise.resolve()
  let names = 0

  const launch = () =>
    new ControllerProcess({
      kubeconfig: cluster.server.kubeconfig,
      nats: nats.url,
      name: `replica-${++names}`,
    }).start()
  const theHolder = () =>
    waitFor('a holder of the lease', async () => {
      for (const one of replicas) {
        if (one.isRunning && (await one.metric('sluice_lease_held')) === 1) return one
      }
      return undefined
    })
  const allReady = () =>
    waitFor('ready replicas', async () => {
      const ready = await Promise.all(replicas.map((one) => one.get('health', '/readyz')))
      return ready.every(({ status }) => status === 200)
    })

  const inStep = () =>
    waitFor('equal digests of all replicas', async () => {
      const texts = await Promise.all(
        replicas.map(async (one) => (await one.get('metrics', '/metrics')).text),
      )
      const states = texts.map((text) => /sluice_state_digest\{([^}]*)\}/.exec(text)?.[1])
      return states[0] !== undefined && states.every((state) => state === states[0])
    })
  /** Applies routes one after another, and retries while the API server is down. */
  const applyRoutes = async (prefix: string, count: number) => {
    for (let n = 0; n < count; n++) {
      await waitFor(`route ${prefix}-${n}`, () =>
        cluster.apply(routeTo(`${prefix}-${n}`)).catch(() => undefined),
      )
    }
  }
  const allAccepted = async (prefix: string, count: number) => {
    for (let n = 0; n < count; n++) {
      await cluster.condition('HTTPRoute', `${prefix}-${n}`, 'Accepted=True')
    }
    for (let n = 0; n < count; n++) {
      const name = `${prefix}-${n}`
      await waitFor(`the history of ${name}`, () => history.accepted(name).at(-1) === 'True')
      expect(history.accepted(name)).not.toContain('False')
      expect(history.writes(name)).toBeLessThanOrEqual(1)
    }
  }
  const withManager = async (work: (manager: JetStreamManager) => Promise<unknown>) => {
    const connection = await connect({ servers: nats.url })
    await work(await jetstreamManager(connection))
    await connection.close()
  }
  const answers = (host: string) =>
    waitFor(`an answer for ${host}`, async () => {
      const { status } = await send(port, { headers: { host } })
      return status === 200
    })

  beforeAll(async () => {
    nats = await startNatsServer()
    upstream = await startUpstream()
    cluster = await new TestCluster(await startApiServer()).install()
    history = new History(cluster.server.kubeconfig, 'httproutes')
    gateways = new History(cluster.server.kubeconfig, 'gateways')
    port = await stablePort()
    const listeners = [
      { name: 'http', port, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } },
    ]
    await cluster.applyAll([
      staticBackend('shop', upstream.port),
      gateway('edge', 'default', { listeners }),
      routeTo('steady'),
    ])
    replicas = await Promise.all([launch(), launch(), launch()])
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    await cluster.server.request('POST', accounts, { metadata: { name: 'edge' } })
    const issued = await cluster.server.request('POST', `${accounts}/edge/token`, {
      spec: { audiences: ['sluice'] },
    })
    const tokenFile = join(folder, 'token')
    writeFileSync(tokenFile, issued.body.status.token)
    const addresses = await Promise.all(replicas.map((one) => one.xdsAddress()))
    const args = ['--xds-token-file', tokenFile]
    proxy = await new ProxyProcess(folder, { addresses, name: 'proxy-1', args }).start()
    await answers('steady.example.com')
    sending = (async () => {
      while (isSending) {
        sent++
        await send(port, { headers: { host: 'steady.example.com' } }).then(
          ({ status }) => status === 200 || failures.push(String(status)),
          (error) => failures.push(String(error)),
        )
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })()
  }, 180_000)

  afterAll(async () => {
    isSending = false
    await sending
    history?.stop()
    gateways?.stop()
    await proxy?.dispose()
    await Promise.all(replicas.map((one) => one.dispose()))
    await nats?.remove()
    await upstream?.close()
    await cluster?.server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('has a Gateway programmed by an authenticated proxy, and shows its address', async () => {
    await cluster.condition('Gateway', 'edge', 'Programmed=True/Programmed')
    const { addresses } = (await cluster.status('Gateway', 'edge')) ?? {}
    expect(addresses).toEqual([{ type: 'IPAddress', value: '127.0.0.1' }])
  })

  it('[design.replicas] survives the death of the lease holder during changes', async () => {
    const applied = applyRoutes('h', 100)
    await cluster.condition('HTTPRoute', 'h-10', 'Accepted=True')
    const holder = await theHolder()
    await holder.kill()
    replicas.splice(replicas.indexOf(holder), 1)
    await applied
    await allAccepted('h', 100)
    await answers('h-99.example.com')
    await inStep()
  }, 90_000)

  it('[design.replicas] survives the death of the NATS server during changes', async () => {
    const applied = applyRoutes('n', 100)
    await cluster.condition('HTTPRoute', 'n-10', 'Accepted=True')
    await nats.kill()
    await nats.restart()
    await applied
    await allAccepted('n', 100)
    await answers('n-99.example.com')
    await inStep()
  }, 90_000)

  it('survives the death of the API server during changes', async () => {
    const applied = applyRoutes('k', 60)
    await cluster.condition('HTTPRoute', 'k-5', 'Accepted=True')
    await cluster.server.kill()
    await cluster.server.restart()
    await applied
    await allAccepted('k', 60)
    await answers('k-59.example.com')
    await inStep()
  }, 120_000)

  it('survives a purged stream, and so does a replica that starts afterwards', async () => {
    await withManager((manager) => manager.streams.purge('SLUICE_EVENTS'))
    const late = await launch()
    replicas.push(late)
    expect(late.stderr).not.toContain('restarting the control loop')
    expect(replicas.some(({ stderr }) => /Event log truncated up to position/.test(stderr))).toBe(
      true,
    )
    await applyRoutes('p', 5)
    await allAccepted('p', 5)
    await answers('p-4.example.com')
    await inStep()
  }, 90_000)

  it('survives a deleted stream, losing only history', async () => {
    await cluster.condition('Gateway', 'edge', 'Programmed=True')
    const before = history.writes('h-1')
    const programmed = gateways.programmed('edge')
    const written = gateways.writes('edge')
    await withManager((manager) => manager.streams.delete('SLUICE_EVENTS'))
    await Promise.all(replicas.map((one) => one.said(/restarting the control loop/)))
    await applyRoutes('d', 5)
    await allAccepted('d', 5)
    await answers('d-4.example.com')
    await allReady()
    await inStep()
    expect(history.writes('h-1')).toBe(before)
    // The count of its routes was written since; that it is programmed was never taken back.
    await waitFor('a write after that', () => gateways.writes('edge') > written)
    expect(gateways.programmed('edge')).toEqual(programmed)
  }, 90_000)

  it('keeps serving its last configuration if the log holds an event of a newer version', async () => {
    const log = await openNatsLog({ servers: nats.url })
    const future = {
      specversion: '1.0' as const,
      id: 'future-1',
      source: '/sluice/future',
      type: 'dev.sluice.future.seen.v9',
      subject: 'sluice.local.Future._.one',
      time: new Date().toISOString(),
      datacontenttype: 'application/json' as const,
      dataschema: 'https://sluice.dev/docs/events#future',
      epoch: 0,
      data: {},
    }
    expect(await log.append([future])).toMatchObject({ ok: true })
    await log.close()
    await Promise.all(replicas.map((one) => one.said(/Serving the last configuration/)))
    for (const one of replicas) {
      const { status, text } = await one.get('health', '/readyz')
      expect(status).toBe(503)
      expect(text).toContain('dev.sluice.future.seen.v9')
    }
    await answers('d-4.example.com')
  })

  it('follows a new log if that one is deleted, as for a downgrade', async () => {
    await withManager((manager) => manager.streams.delete('SLUICE_EVENTS'))
    await applyRoutes('g', 5)
    await allAccepted('g', 5)
    await answers('g-4.example.com')
    await allReady()
    await inStep()
  }, 90_000)

  it('has lost no request', () => {
    expect(sent).toBeGreaterThan(100)
    expect(failures).toEqual([])
  })
})
