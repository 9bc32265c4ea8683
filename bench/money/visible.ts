/**
 * Claim: what a proxy has settled is known to the replica of every other proxy within a second (p99). Two replicas
 * with one proxy each share a ledger on a real NATS server; the connections between proxies and replicas are calls in
 * this process, so a real one adds its own delay.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { definitionOf } from '../../src/control/ledger/budget-state.ts'
import { Ledger } from '../../src/control/ledger/ledger.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { BudgetHolder } from '../../src/gateway/proxy/budgets/budget-holder.ts'
import { SharedAccounts } from '../../src/gateway/proxy/budgets/memory.ts'
import { limitOf } from '../../src/ground/model/budgets.ts'
import { startNatsServer } from '../../test/support/nats-server.ts'
import { findPart } from '../../test/support/parts.ts'
import { waitFor } from '../../test/support/wait-for.ts'
import { type BenchContext, quantile, type Row } from '../harness.ts'
import { budgetConfig, month } from './events.ts'

/** Budgets that are charged all the time. */
const budgets = 100

const configs = new Map(
  Array.from({ length: budgets }, (_, number) => {
    const config = budgetConfig(number, month)
    return [config.id, config] as const
  }),
)

async function startReplica(servers: string, name: string) {
  const log = await openNatsLog({ servers, log: 'ledger' })
  const onProblem = (text: string | undefined) => {
    if (text !== undefined) console.error(`${name}: ${text}`)
  }
  const ledger = await new Ledger({ log, isSole: false, onProblem }).open()
  ledger.configure(new Map([...configs].map(([id, config]) => [id, definitionOf(config)])))
  const connect = ledger.connect.bind(ledger)
  const holder = new BudgetHolder({ proxy: name, isSole: false, forget: () => undefined, connect })
  const accounts = new SharedAccounts(holder.memory)
  const close = async () => {
    await holder.close()
    await ledger.close()
    await log.close()
  }
  return { ledger, holder, accounts, close }
}

type Replica = Awaited<ReturnType<typeof startReplica>>

/** Charges all budgets through one proxy. Returns the milliseconds until the other replica knows each charge. */
async function settle(from: Replica, to: Replica, spread: number): Promise<number[]> {
  const work = [...configs.values()].map(async (config, index) => {
    await delay((index * spread) / budgets)
    const question = { budget: config.id, value: '', generation: 1, limit: limitOf(config, '') }
    const { account } = await from.holder.find(question)
    if (account === undefined || !from.accounts.reserve(account, 10n, 0n)) {
      throw new Error(`${config.name} admits nothing`)
    }
    const before = to.ledger.fold.budgets.get(config.id)?.charged ?? 0n
    from.accounts.settle(account, 10n, 7n, true)
    const begun = performance.now()
    while ((to.ledger.fold.budgets.get(config.id)?.charged ?? 0n) < before + 7n) await delay(1)
    return performance.now() - begun
  })
  return await Promise.all(work)
}

export default async function visible({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  const id = 'money.visible'
  if (!findPart('nats-server').found) {
    return [{ id: `${id}.p99`, unit: 'ms', own: [], note: 'nats-server is absent' }]
  }
  const nats = await startNatsServer()
  const replicas: Replica[] = []
  try {
    for (const name of ['a', 'b']) replicas.push(await startReplica(nats.url, name))
    const [one, other] = replicas
    if (one === undefined || other === undefined) throw new Error('a replica is missing')
    const isReady = ({ ledger }: Replica) =>
      [...ledger.fold.budgets.values()].filter(({ shares }) => shares.size === 2).length === budgets
    await waitFor('the shares of both proxies', () => isReady(one) && isReady(other))
    const [p50, p99]: [number[], number[]] = [[], []]
    for (let round = 0; round <= rounds; round++) {
      const samples: number[] = []
      for (let part = 0; part < (quick ? 2 : 6); part++) {
        samples.push(...(await settle(one, other, 1_000)), ...(await settle(other, one, 1_000)))
      }
      // The first round warms up.
      if (round === 0) continue
      p50.push(quantile(samples, 0.5))
      p99.push(quantile(samples, 0.99))
      note(`round ${round} of ${rounds}`)
    }
    const text = `${budgets} budgets, each charged once a second by each of two proxies`
    return [
      { id: `${id}.p50`, unit: 'ms', own: p50, note: text },
      { id: `${id}.p99`, unit: 'ms', own: p99, bound: { atMost: 1_000 }, note: text },
    ]
  } finally {
    for (const replica of replicas) await replica.close()
    await nats.remove()
  }
}
