/**
 * What the benches of the control plane measure: a real API server with etcd, `sluice controller` and
 * `sluice proxy` as processes of their own, an upstream, and a bare watch client that gets the
 * same changes at the same time.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, get, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { KubeClient, type KubeObject, openCluster } from '../../src/control/kube/index.ts'
import { type ApiServer, startApiServer } from '../../test/support/api-server.ts'
import { gateway, TestCluster, type TestObject } from '../../test/support/cluster.ts'
import { ProxyProcess, stablePort } from '../../test/support/cluster-rig.ts'
import { ControllerProcess } from '../../test/support/controller.ts'
import { waitFor } from '../../test/support/wait-for.ts'

const routesPath = 'apis/gateway.networking.k8s.io/v1/httproutes'
const writeAttempts = 5
const writesAtOnce = 32
const collection = '/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes'

/** A route of ordinary size with a host of its own; its answers carry the revision. */
export function benchRoute(name: string, revision: number): TestObject {
  const set = [{ name: 'x-revision', value: `${revision}` }]
  const backendRefs = [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'shop' }]
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name, namespace: 'default' },
    spec: {
      parentRefs: [{ name: 'edge' }],
      hostnames: [`${name}.example.com`],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/api' } }],
          filters: [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set } }],
          backendRefs,
        },
        { matches: [{ path: { type: 'PathPrefix', value: '/static' } }], backendRefs },
      ],
    },
  }
}

/** A client that only watches: records when it saw each generation of each route. */
class BareWatch {
  readonly #seen = new Map<string, number>()
  readonly #waiting = new Map<string, (at: number) => void>()
  readonly #versions = new Map<string, number>()
  readonly #stop = new AbortController()
  readonly following: Promise<void>

  constructor(kubeconfig: string) {
    this.following = this.#follow(new KubeClient(openCluster(kubeconfig)))
  }

  /** The server may end streams at any time; the client then resumes where it was. */
  async #follow(client: KubeClient): Promise<void> {
    const { signal } = this.#stop
    let resourceVersion: string | undefined = '0'
    while (!signal.aborted) {
      try {
        for await (const { type, object } of client.watch(
          routesPath,
          { resourceVersion },
          signal,
        )) {
          resourceVersion = object.metadata.resourceVersion
          if (type !== 'BOOKMARK') this.#see(object)
        }
      } catch (error) {
        if (!signal.aborted) throw error
      }
    }
  }

  #see({ metadata: { name, generation } }: KubeObject): void {
    this.#versions.set(name, (this.#versions.get(name) ?? 0) + 1)
    const key = `${name}@${generation}`
    if (this.#seen.has(key)) return
    const at = performance.now()
    this.#seen.set(key, at)
    this.#waiting.get(key)?.(at)
    this.#waiting.delete(key)
  }

  /** The moment at which a generation was seen first. */
  when(name: string, generation: number): Promise<number> {
    const key = `${name}@${generation}`
    const at = this.#seen.get(key)
    if (at !== undefined) return Promise.resolve(at)
    return new Promise((resolve) => this.#waiting.set(key, resolve))
  }

  /** Versions of a route so far: the writes of its spec and of its status. */
  versions(name: string): number {
    return this.#versions.get(name) ?? 0
  }

  stop(): void {
    this.#stop.abort()
  }
}

export class Scene {
  readonly cluster: TestCluster
  readonly controller: ControllerProcess
  readonly proxy: ProxyProcess
  readonly watch: BareWatch
  readonly #server: ApiServer
  readonly #port: number
  readonly #upstream: Server
  readonly #folder: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 })

  private constructor(parts: {
    readonly cluster: TestCluster
    readonly controller: ControllerProcess
    readonly proxy: ProxyProcess
    readonly port: number
    readonly upstream: Server
    readonly folder: string
  }) {
    this.cluster = parts.cluster
    this.#server = parts.cluster.server
    this.controller = parts.controller
    this.proxy = parts.proxy
    this.#port = parts.port
    this.#upstream = parts.upstream
    this.#folder = parts.folder
    this.watch = new BareWatch(this.#server.kubeconfig)
  }

  /** Needs etcd, kube-apiserver and the CRDs of the Gateway API (`test/assets/setup`). */
  static async start(): Promise<Scene> {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
    const upstream = createServer((_, response) => response.end('ok'))
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    const cluster = await new TestCluster(await startApiServer()).install()
    const port = await stablePort()
    const listeners = [
      { name: 'http', port, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } },
    ]
    const { port: upstreamPort } = upstream.address() as AddressInfo
    await cluster.applyAll([
      {
        apiVersion: 'sluice.dev/v1alpha1',
        kind: 'GatewayBackend',
        metadata: { name: 'shop', namespace: 'default' },
        spec: { static: { host: '127.0.0.1', port: upstreamPort } },
      },
      gateway('edge', 'default', { listeners }),
    ])
    const { kubeconfig } = cluster.server
    const controller = await new ControllerProcess({
      kubeconfig,
      env: { SLUICE_LEASE_DURATION: '15s' },
    }).start()
    const addresses = [await controller.xdsAddress()]
    const token = await Scene.#token(cluster, folder)
    const args = ['--xds-token-file', token, '--access-log', 'text']
    const proxy = await new ProxyProcess(folder, { addresses, name: 'bench', args }).start()
    return new Scene({ cluster, controller, proxy, port, upstream, folder })
  }

  static async #token({ server }: TestCluster, folder: string): Promise<string> {
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    await server.request('POST', accounts, { metadata: { name: 'edge' } })
    const spec = { audiences: ['sluice'], expirationSeconds: 86_400 }
    const issued = await server.request('POST', `${accounts}/edge/token`, { spec })
    const file = join(folder, 'token')
    writeFileSync(file, issued.body.status.token)
    return file
  }

  /** Creates a route; resolves when the server has taken it. */
  async create(name: string): Promise<void> {
    await this.#ok('POST', collection, benchRoute(name, 1))
  }

  /** Changes a route. If nothing else changes it, its generation equals the revision. */
  async edit(name: string, revision: number): Promise<void> {
    await this.#ok('PATCH', `${collection}/${name}`, benchRoute(name, revision))
  }

  async remove(name: string): Promise<void> {
    await this.#ok('DELETE', `${collection}/${name}`)
  }

  /** A connection that the server closes meanwhile says nothing of the write: it is sent again. */
  async #ok(method: string, path: string, body?: object): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#server.request(method, path, body).catch((error) => {
        if (attempt === writeAttempts) throw error
        return delay(100).then(() => undefined)
      })
      if (answer === undefined) continue
      const isThere = attempt > 1 && (answer.status === 409 || answer.status === 404)
      if (answer.status < 300 || isThere) return
      throw new Error(`${method} ${path}: ${answer.status} ${answer.body?.message}`)
    }
  }

  /** The revision by which a route answers now; undefined while it does not. */
  #revision(name: string): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const headers = { host: `${name}.example.com` }
      const options = { port: this.#port, host: '127.0.0.1', agent: this.#agent, path: '/api' }
      get({ ...options, headers }, (response) => {
        response.resume()
        response.once('error', reject)
        response.once('end', () => {
          const { statusCode, headers: answered } = response
          resolve(statusCode === 200 ? answered['x-revision']?.toString() : undefined)
        })
      }).once('error', reject)
    })
  }

  /** Resolves with the moment at which a route has answered by a revision first. */
  async answers(name: string, revision: number, limitMs = 120_000): Promise<number> {
    const end = performance.now() + limitMs
    while ((await this.#revision(name)) !== `${revision}`) {
      if (performance.now() > end) throw new Error(`${name} does not answer by ${revision}`)
      await delay(1)
    }
    return performance.now()
  }

  /** Creates routes on a schedule; resolves with the moment at which the last one was taken. */
  async createPaced(names: readonly string[], perSecond: number): Promise<number> {
    const begun = performance.now()
    let index = 0
    // Where the server falls behind, so do the writes: it would refuse more at once.
    const write = async () => {
      while (index < names.length) {
        const at = index++
        const wait = begun + (at * 1_000) / perSecond - performance.now()
        if (wait > 1) await delay(wait)
        await this.create(names[at] ?? '')
      }
    }
    await Promise.all(Array.from({ length: writesAtOnce }, write))
    return performance.now()
  }

  /** Resolves with the moment at which all of these routes have answered. */
  async allAnswer(names: readonly string[]): Promise<number> {
    const left = [...names]
    const next = async () => {
      for (let name = left.pop(); name !== undefined; name = left.pop()) await this.answers(name, 1)
    }
    await Promise.all(Array.from({ length: 16 }, next))
    return performance.now()
  }

  /** Statuses that the controller has written so far, of a kind. */
  writes(kind: string): Promise<number> {
    return this.controller.metric('sluice_status_writes_total', `kind="${kind}",outcome="written"`)
  }

  /** Resolves when no status waits to be written, and none was for two seconds. */
  async statusesSettled(): Promise<void> {
    let quietSince = 0
    let before = -1
    await waitFor(
      'settled statuses',
      async () => {
        const depth = await this.controller.metric('sluice_queue_depth')
        const writes = await this.controller.metric('sluice_status_writes_total')
        const now = performance.now()
        if (depth > 0 || writes !== before) quietSince = now
        before = writes
        await delay(100)
        return now - quietSince > 2_000
      },
      120_000,
    )
  }

  async dispose(): Promise<void> {
    this.watch.stop()
    this.#agent.destroy()
    await this.proxy.dispose()
    await this.controller.dispose()
    this.#upstream.close()
    await this.#server.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
