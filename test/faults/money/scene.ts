/** Three replicas of the control plane on one NATS server, and three proxies, each a process that can be killed. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { budgetCharged } from '../../../events/index.ts'
import type { Position } from '../../../src/control/log/index.ts'
import { openNatsLog } from '../../../src/control/log/nats.ts'
import { Child, ProxyProcess, stablePort } from '../../support/cluster-rig.ts'
import { type Manifest, manifest } from '../../support/manifests.ts'
import { type NatsServer, startNatsServer } from '../../support/nats-server.ts'
import { waitFor } from '../../support/wait-for.ts'
import type { ReplicaOptions } from './replica-process.ts'

export const proxyAddresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const
/** The name of a proxy, with which the names of its holders begin. */
export const proxyNameOf = (address: string): string => `edge-${address.split('.').at(-1)}`

const replicaNames = ['a', 'b', 'c'] as const
const patienceMs = 180_000

class Replica extends Child {
  readonly #options: ReplicaOptions
  /** The folder of its state; a restarted replica has the same. */
  readonly #home: string

  constructor(options: ReplicaOptions, home: string) {
    super(process.execPath)
    this.#options = options
    this.#home = home
  }

  launch(): void {
    const program = join(import.meta.dirname, 'replica-process.ts')
    this.spawn(['--no-warnings', program, JSON.stringify(this.#options)], {
      XDG_STATE_HOME: this.#home,
    })
  }

  get isHolder(): boolean {
    const last = [...this.output.matchAll(/(no longer )?holding the lease/g)].at(-1)
    return !this.hasEnded && last !== undefined && last[1] === undefined
  }
}

export interface SceneOptions {
  readonly objects: readonly Manifest[]
  readonly catalog: object
}

export class MoneyScene {
  readonly nats: NatsServer
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-money-'))
  readonly #replicas = new Map<string, Replica>()
  readonly #proxies = new Map<string, ProxyProcess>()

  private constructor(nats: NatsServer) {
    this.nats = nats
  }

  static async start({ objects, catalog }: SceneOptions): Promise<MoneyScene> {
    const scene = new MoneyScene(await startNatsServer())
    try {
      await scene.#launch(objects, catalog)
      return scene
    } catch (error) {
      await scene.dispose()
      throw error
    }
  }

  async #launch(objects: readonly Manifest[], catalog: object): Promise<void> {
    const manifests = join(this.#folder, 'manifests')
    mkdirSync(manifests)
    writeFileSync(join(manifests, 'all.yaml'), manifest(...objects))
    const catalogFile = join(this.#folder, 'catalog.json')
    writeFileSync(catalogFile, JSON.stringify(catalog))
    const addresses: string[] = []
    for (const name of replicaNames) {
      const xdsAddress = `127.0.0.1:${await stablePort()}`
      addresses.push(xdsAddress)
      const digestKey = join(this.#folder, 'digest.key')
      const options = { manifests, nats: this.nats.url, digestKey, xdsAddress }
      const replica = new Replica(options, join(this.#folder, `replica-${name}`))
      this.#replicas.set(name, replica)
      replica.launch()
      // The first one makes the streams and the key that all share.
      await this.#serves(replica)
    }
    for (const [at, address] of proxyAddresses.entries()) {
      // Each proxy prefers a replica of its own.
      const preferred = [...addresses.slice(at), ...addresses.slice(0, at)]
      const args = ['--bind-address', address, '--workers', '1', '--model-catalog', catalogFile]
      const name = proxyNameOf(address)
      this.#proxies.set(
        address,
        new ProxyProcess(this.#folder, { addresses: preferred, name, args }),
      )
    }
    await Promise.all(proxyAddresses.map((address) => this.startProxy(address)))
  }

  async #serves(replica: Replica): Promise<void> {
    await waitFor(
      'a replica that serves proxies',
      () => {
        if (/^problem: /m.test(replica.output)) throw new Error(replica.output)
        if (replica.hasEnded) throw new Error(`it ended:\n${replica.output}`)
        return /^xds: /m.test(replica.output)
      },
      patienceMs,
    )
  }

  async startProxy(address: string): Promise<void> {
    const proxy = this.#proxies.get(address)
    proxy?.launch()
    await waitFor(
      `proxy ${address}`,
      () => {
        if (proxy?.hasEnded === true) throw new Error(`it ended:\n${proxy.output}`)
        return proxy !== undefined && /^ready$/m.test(proxy.output)
      },
      patienceMs,
    )
  }

  /** Waits until the ledger counts something of a proxy, or that it runs. */
  async counted(proxy: string): Promise<void> {
    const log = await openNatsLog({ servers: this.nats.url, log: 'ledger', create: false })
    const over = new AbortController()
    const { signal } = over
    const timer = setTimeout(() => over.abort(), patienceMs)
    try {
      const from = ((await log.lastPosition()) + 1) as Position
      for await (const { event } of log.tail(from, { signal })) {
        if (event.type !== budgetCharged.type) continue
        if (event.data.holder.startsWith(`${proxy}~`)) return
      }
      throw new Error(`the ledger counts nothing of ${proxy}`)
    } finally {
      clearTimeout(timer)
      await log.close()
    }
  }

  async killProxy(address: string): Promise<void> {
    await this.#proxies.get(address)?.kill()
  }

  get replicas(): readonly string[] {
    return [...this.#replicas.keys()]
  }

  /** The name of the replica that holds the lease. */
  holder(): Promise<string> {
    return waitFor(
      'a holder of the lease',
      () => [...this.#replicas].find(([, replica]) => replica.isHolder)?.[0],
      patienceMs,
    )
  }

  /** Kills a replica and starts it again, as a platform does. */
  async restart(name: string): Promise<void> {
    const replica = this.#replicas.get(name)
    if (replica === undefined) return
    await replica.kill()
    replica.launch()
    await this.#serves(replica)
  }

  /** What every process said at last. */
  lastWords(): string[] {
    const all = [...this.#replicas, ...this.#proxies]
    return all.map(
      ([name, { output }]) => `--- ${name}:\n${output.split('\n').slice(-12).join('\n')}`,
    )
  }

  async dispose(): Promise<void> {
    const all = [...this.#replicas.values(), ...this.#proxies.values()]
    await Promise.all(all.map((one) => one.dispose()))
    await this.nats.remove()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
