/** A proxy that spends budgets: its main thread is real, and its workers are a model. */
import {
  decodeReport,
  decodeUpdate,
  encodeReport,
  encodeUpdate,
} from '../../src/control/wire/ledger-messages.ts'
import { BudgetHolder } from '../../src/gateway/proxy/budgets/budget-holder.ts'
import { SharedAccounts } from '../../src/gateway/proxy/budgets/memory.ts'
import { type BudgetConfig, type ConnectLedger, limitOf } from '../../src/ground/model/budgets.ts'
import type { Connection } from '../cluster-simulation/network.ts'
import type { Random } from '../virtual-time/random.ts'
import { Machine } from '../virtual-time/world.ts'
import type { LedgerCluster } from './simulation.ts'

export const values = ['ada', 'bob', 'cleo']

/** After this time, a process that was suspended has noticed it. */
const awakeMs = 1_000

/** One run of the process. */
interface Run {
  readonly holder: BudgetHolder
  readonly accounts: SharedAccounts
  /** The names under which the run has held allowances. */
  readonly names: string[]
}

export class SpendingProxy {
  readonly machine: Machine
  readonly #cluster: LedgerCluster
  readonly #random: Random
  #run: Run | undefined
  isBusy = true

  constructor(cluster: LedgerCluster, name: string, random: Random) {
    this.machine = new Machine(name)
    this.#cluster = cluster
    this.#random = random
  }

  start(): void {
    this.machine.isUp = true
    this.#cluster.world.schedule(this.machine, 0, () => this.#begin())
  }

  #begin(): void {
    const names: string[] = []
    const holder = new BudgetHolder({
      proxy: this.machine.name,
      isSole: false,
      connect: this.#connect(names),
      forget: () => undefined,
    })
    this.#run = { holder, accounts: new SharedAccounts(holder.memory), names }
    this.#next(this.#run)
  }

  /** The process dies. */
  crash(): void {
    const { machine } = this
    machine.run++
    machine.isUp = false
    this.#cluster.network.disconnect(machine, 'crashed')
    for (const name of this.#run?.names ?? []) this.#cluster.truth.crash(name)
    this.#run = undefined
  }

  /** A holder's connection, opened again whenever it ends, to any replica that is up. */
  #connect(names: string[]): ConnectLedger {
    const { world, network } = this.#cluster
    return (holder, receive) => {
      names.push(holder)
      let link: Connection | undefined
      let last: Uint8Array | undefined
      let isClosed = false
      const send = () => {
        const bytes = last
        const to = link
        if (bytes === undefined || to === undefined) return
        const [, there] = to.ends
        to.send(there, () => this.#cluster.replicaOf(there)?.report(to, decodeReport(bytes)))
      }
      const open = () => {
        if (isClosed) return
        const up = this.#cluster.replicas.filter(
          ({ machine, isOpen }) => machine.isUp && isOpen && !network.isCut(this.machine, machine),
        )
        if (up.length === 0) {
          world.schedule(this.machine, 500, open)
          return
        }
        const replica = this.#random.pick(up)
        const opened = network.connect(this.machine, replica.machine)
        link = opened
        opened.onEnd(this.machine, () => {
          link = undefined
          world.schedule(this.machine, this.#random.between(100, 1_000), open)
        })
        replica.accept(opened, (update) => {
          const bytes = encodeUpdate({ holder, ...update })
          opened.send(this.machine, () => {
            const { holder: _, ...received } = decodeUpdate(bytes)
            receive(received)
          })
        })
        send()
      }
      open()
      return {
        report: (report) => {
          last = encodeReport(report)
          send()
        },
        close: () => {
          isClosed = true
          link?.end('closed', this.machine)
        },
      }
    }
  }

  /** Sends requests, at intervals and in bursts. */
  #next(run: Run): void {
    const { world } = this.#cluster
    const delay = this.#random.chance(0.3) ? 1 : this.#random.between(5, 800)
    world.schedule(this.machine, delay, () => {
      if (this.#run !== run) return
      if (this.isBusy)
        void this.request(this.#random.pick(this.#cluster.truth.budgets), this.#random.pick(values))
      this.#next(run)
    })
  }

  /** Sends a request. Resolves to whether it was admitted. */
  async request(
    config: BudgetConfig,
    value: string,
    estimate = this.#estimate(config),
  ): Promise<boolean> {
    const run = this.#run
    if (run === undefined) return false
    const { world, truth } = this.#cluster
    const limit = limitOf(config, value)
    const question = { budget: config.id, value, generation: config.generation, limit }
    const { account } = await run.holder.find(question)
    // The name in force now: the account belongs to it.
    const holder = run.names.at(-1) ?? ''
    if (account === undefined || run.accounts.isUnreachable) return false
    if (!run.accounts.reserve(account, estimate, 0n)) {
      truth.refused++
      return false
    }
    const isJustAwake = world.now - this.machine.pausedUntil < awakeMs
    truth.reserve(holder, config, value, { amount: estimate, isJustAwake })
    const [low, high] = this.#random.chance(0.1) ? [1, 2] : [0, 1]
    const share = BigInt(Math.floor(this.#random.between(low, high) * 1_000))
    const actual = this.#random.chance(0.1) ? 0n : (estimate * share) / 1_000n
    const duration = this.#random.chance(0.05)
      ? this.#random.between(5_000, 90_000)
      : this.#random.between(5, 2_000)
    world.schedule(this.machine, duration, () => {
      truth.settle(holder, config, value, { amount: estimate, actual })
      run.accounts.settle(account, estimate, actual, actual > 0n)
    })
    return true
  }

  #estimate({ amount }: BudgetConfig): bigint {
    return (BigInt(amount) * BigInt(Math.floor(this.#random.between(1, 30)))) / 1_000n + 1n
  }
}
