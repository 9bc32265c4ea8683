/**
 * Claim: a budget costs a worker at most 2 µs of CPU time for a request: finding the account, reserving and charging.
 * The peer is the same limit by a rate limit service over gRPC; compared is the CPU time of the proxy for a request.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BudgetHolder } from '../../src/gateway/proxy/budgets/budget-holder.ts'
import { WorkerBudgets } from '../../src/gateway/proxy/budgets/worker-budgets.ts'
import { budget, policy, staticBackend, toBackend } from '../../test/support/manifests.ts'
import { startRateLimitServer } from '../../test/support/rate-limit-server.ts'
import { type BenchContext, cpuNanoseconds, interleave, pinSelf, type Row } from '../harness.ts'
import { askOnce, scenarios, startBenchUpstream } from '../proxy/load.ts'
import { loadCore, type MeasuredProxy } from '../proxy/process.ts'
import { slicedCosts } from '../proxy/slices.ts'
import { startSluice } from '../proxy/sluice.ts'
import { budgetConfig, month } from './events.ts'

/** A worker with accounts for the values; its ledger grants the whole amounts. */
async function openWorker(budgets: number, values: number) {
  const holder = new BudgetHolder({
    proxy: 'bench',
    isSole: true,
    forget: () => undefined,
    connect: (_, receive) => {
      const windows = Array.from({ length: budgets }, (_, number) => ({
        budget: budgetConfig(number, month).id,
        window: 1,
        endsAt: undefined,
        share: 1_000_000,
        generation: 1,
      }))
      const update = { isReleased: false, windows, accounts: [] }
      setImmediate(() => receive({ counted: 0, answered: 0, ...update }))
      return { report: () => undefined, close: () => undefined }
    },
  })
  const worker: WorkerBudgets = new WorkerBudgets((message) => {
    if (message.type === 'budgets') {
      const { memory } = holder
      worker.receive({ type: 'budgets', memory, reservations: holder.reservations(0) })
    } else {
      void holder
        .find(message.question)
        .then((reply) => worker.receive({ type: 'budget-account', reply }))
    }
  })
  worker.begin()
  const configs = Array.from({ length: budgets }, (_, number) => budgetConfig(number, month))
  const names = Array.from({ length: values }, (_, number) => `team-${number}`)
  for (const config of configs) for (const name of names) await worker.account(config, name)
  return { holder, worker, configs, names }
}

/** Nanoseconds of a check: what a request reserves, and what it is charged. */
function checks({ worker, configs, names }: Awaited<ReturnType<typeof openWorker>>, count: number) {
  const spent = cpuNanoseconds(() => {
    for (let number = 0; number < count; number++) {
      // A step that visits the accounts in no order that caches could use.
      const at = (number * 7919) % (configs.length * names.length)
      const config = configs[at % configs.length]
      const name = names[Math.floor(at / configs.length)]
      if (config === undefined || name === undefined) throw new Error('no account')
      const account = worker.account(config, name)
      if (account instanceof Promise) throw new Error('the account is not open')
      const reserved = account.reserve(18_000_000n, undefined)
      if (typeof reserved === 'string') throw new Error(`refused: ${reserved}`)
      reserved.settle(17_000_000n)
    }
  })
  return spent / count
}

async function checkRows({ rounds, quick }: BenchContext): Promise<Row[]> {
  const few = await openWorker(10, 1)
  const many = await openWorker(10_000, 10)
  const count = quick ? 100_000 : 500_000
  const samples = await interleave(rounds, {
    few: () => checks(few, count) / 1_000,
    many: () => checks(many, count) / 1_000,
  })
  await Promise.all([few.holder.close(), many.holder.close()])
  const bound = { atMost: 2 }
  return [
    { id: 'money.check.10-budgets', unit: 'µs', own: samples.few, bound },
    {
      id: 'money.check.10000-budgets',
      unit: 'µs',
      own: samples.many,
      peer: { name: 'with 10 budgets', samples: samples.few },
      bound,
      boundOf: 'value',
      note: '100,000 accounts, asked in no order',
    },
  ]
}

const limitOfRequests = budget('measured', 'HTTPRoute/measured', {
  each: 'request.headers["x-team"]',
  limit: { unit: 'Requests', amount: '1000000000' },
  window: { unit: 'Month', timeZone: 'UTC' },
})

const limitByService = (port: number) => [
  staticBackend('limits', port, { http: { version: 'HTTP2' } }),
  policy('measured', 'HTTPRoute/measured', {
    traffic: {
      rateLimit: {
        global: {
          domain: 'bench',
          backendRef: toBackend('limits'),
          descriptors: [{ entries: [{ name: 'team', expression: 'request.headers["x-team"]' }] }],
        },
      },
    },
  }),
]

async function requestRows({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folders = [0, 1, 2].map(() => mkdtempSync(join(tmpdir(), 'sluice-bench-')))
  const upstream = await startBenchUpstream()
  const service = await startRateLimitServer()
  const running: MeasuredProxy[] = []
  try {
    for (const [at, objects] of [[limitOfRequests], limitByService(service.port), []].entries()) {
      const proxy = await startSluice(folders[at] ?? '', upstream.port, 10, { objects })
      running.push(proxy)
      const head = await askOnce(proxy.port, scenarios.get.request)
      if (!head.startsWith('HTTP/1.1 200')) throw new Error(`a request fails:\n${head}`)
    }
    if (service.asked.length === 0) throw new Error('the rate limit service was not asked')
    const [budgeted = [], external = [], plain = []] = await slicedCosts(running, {
      scenario: scenarios.get,
      rounds,
      seconds: quick ? 0.6 : 1.5,
      warmUpSeconds: quick ? 2 : 5,
    })
    const beyond = (own: number[]) => own.map((cost, round) => cost - (plain[round] ?? 0))
    return [
      {
        id: 'money.request.budget',
        unit: 'µs',
        own: beyond(budgeted),
        peer: { name: 'rate limit service', samples: beyond(external) },
        note: `beyond ${Math.round(plain.at(-1) ?? 0)} µs of the request itself, all threads of the proxy`,
      },
    ]
  } finally {
    for (const proxy of running) await proxy.stop()
    service.close()
    upstream.close()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
}

export default async function check(context: BenchContext): Promise<Row[]> {
  return [...(await checkRows(context)), ...(await requestRows(context))]
}
