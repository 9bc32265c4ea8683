/** A replica with its ledger. */
import { definitionOf } from '../../src/control/ledger/budget-state.ts'
import { Ledger } from '../../src/control/ledger/ledger.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import type {
  HolderReport,
  HolderUpdate,
  LedgerConnection,
} from '../../src/ground/model/budgets.ts'
import { NatsLink } from '../cluster-simulation/nats-link.ts'
import type { Connection } from '../cluster-simulation/network.ts'
import { Machine } from '../virtual-time/world.ts'
import type { LedgerCluster } from './simulation.ts'

interface Accepted {
  readonly receive: (update: HolderUpdate) => void
  holder?: LedgerConnection
}

export class LedgerReplica {
  readonly machine: Machine
  readonly #cluster: LedgerCluster
  readonly #accepted = new Map<Connection, Accepted>()
  ledger: Ledger | undefined

  constructor(cluster: LedgerCluster, name: string) {
    this.machine = new Machine(name)
    this.#cluster = cluster
  }

  get isOpen(): boolean {
    return this.ledger !== undefined
  }

  start(): void {
    this.machine.isUp = true
    const { run } = this.machine
    this.#cluster.world.schedule(this.machine, 0, () => void this.#open(run))
  }

  async #open(run: number): Promise<void> {
    const { nats, network, random, truth, world } = this.#cluster
    const link = new NatsLink(this.machine, nats, network, random)
    try {
      const log = await openNatsLog({
        servers: 'nats',
        log: 'ledger',
        patienceMs: 5_000,
        connect: async () => link.asLink(),
      })
      const onProblem = (text: string | undefined) => world.note(`ledger: ${text ?? 'works again'}`)
      const snapshotEvery = 200
      const ledger = await new Ledger({ log, isSole: false, onProblem, snapshotEvery }).open()
      if (this.machine.run !== run) return
      ledger.configure(new Map(truth.budgets.map((budget) => [budget.id, definitionOf(budget)])))
      this.ledger = ledger
    } catch (error) {
      world.note(`cannot open: ${String(error)}`)
      setTimeout(() => void this.#open(run), 1_000)
    }
  }

  crash(): void {
    this.machine.run++
    this.machine.isUp = false
    this.ledger = undefined
    this.#accepted.clear()
    this.#cluster.network.disconnect(this.machine, 'crashed')
  }

  accept(connection: Connection, receive: (update: HolderUpdate) => void): void {
    this.#accepted.set(connection, { receive })
    connection.onEnd(this.machine, () => {
      this.#accepted.get(connection)?.holder?.close()
      this.#accepted.delete(connection)
    })
  }

  report(connection: Connection, report: HolderReport): void {
    const accepted = this.#accepted.get(connection)
    if (accepted === undefined || this.ledger === undefined) return
    accepted.holder ??= this.ledger.connect(report.holder, accepted.receive)
    accepted.holder.report(report)
  }
}
