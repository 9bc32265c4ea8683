/**
 * `npm run faults -- money`: proxies, replicas, the holder of the lease and NATS are killed in the midst of paid
 * requests. At the end, every budget must agree with the bill of the vendor (`books.ts`).
 */
import { setTimeout as after } from 'node:timers/promises'
import { poolOf } from '../../../src/control/ledger/ledger-fold.ts'
import { openNatsLog } from '../../../src/control/log/nats.ts'
import { usdText } from '../../../src/engines/messages/cost/money.ts'
import { limitOf } from '../../../src/ground/model/budgets.ts'
import { stablePort } from '../../support/cluster-rig.ts'
import { sluice } from '../../support/gateway.ts'
import {
  aiBackend,
  budget,
  gateway,
  httpRoute,
  type Manifest,
  toBackend,
} from '../../support/manifests.ts'
import { waitFor } from '../../support/wait-for.ts'
import { randomFrom } from '../plan.ts'
import { compareBooks, Holders, type Kill } from './books.ts'
import { closeClients, routes } from './clients.ts'
import { Customers } from './customers.ts'
import { MoneyScene, proxyAddresses, proxyNameOf } from './scene.ts'
import { BillingVendor, catalog } from './vendor.ts'

export interface MoneyOptions {
  /** Requests that the vendor must have billed before the run ends. */
  readonly requests: number
  readonly seed: number
  /** The run ends then, however much was billed. */
  readonly withinMs: number
  readonly tell: (text: string) => void
}

export interface MoneyResult {
  readonly ok: boolean
  readonly problems: readonly string[]
  readonly billed: number
  readonly seconds: number
  readonly refused: number
  readonly failed: number
  readonly faults: number
  readonly events: number
  readonly accounts: number
  readonly incomplete: number
  readonly lostRequests: number
  readonly lostUsd: string
  readonly longestLossMs: number
}

const patienceMs = 300_000
/** Teams whose amounts are larger than what they spend, and teams that exhaust one budget each. */
const wide = ['w0', 'w1', 'w2', 'w3', 'w4', 'w5']
const narrow = { USD: ['u0', 'u1'], Tokens: ['t0', 't1'], Requests: ['r0', 'r1'] } as const
const teams = [...wide, ...Object.values(narrow).flat()]
/** How many requests the smaller amounts are enough for, at most. */
const mostRequests = 300
/** What a request costs on average, in units of each budget. */
const average = { USD: 0.000_6, Tokens: 60, Requests: 1 } as const

function objects(vendor: BillingVendor, port: number, requests: number): Manifest[] {
  const ai = { routes: { '/v1/chat/completions': 'Completions', '/v1/messages': 'Messages' } }
  const policies = { ai, auth: { key: 'gateway-key' } }
  const vendorAt = { host: '127.0.0.1', port: vendor.port }
  const of = (name: string, provider: object) => [
    aiBackend(name, { provider: { ...provider, ...vendorAt } }, policies),
    httpRoute(name, {
      rules: [
        {
          matches: [{ headers: [{ name: 'x-route', value: name }] }],
          backendRefs: [toBackend(name)],
        },
      ],
    }),
  ]
  const some = Math.min(requests / teams.length / 2, mostRequests)
  const budgets = Object.entries(narrow).map(([unit, values]) => {
    const amount = (some * average[unit as keyof typeof average]).toFixed(unit === 'USD' ? 6 : 0)
    return {
      ...budget(unit.toLowerCase(), `HTTPRoute/${routes.openai}`, {}),
      spec: {
        targetRefs: Object.values(routes).map((name) => ({
          group: 'gateway.networking.k8s.io',
          kind: 'HTTPRoute',
          name,
        })),
        each: 'request.headers["x-team"]',
        limit: { unit, amount: unit === 'USD' ? '1000000' : '1000000000' },
        overrides: values.map((value) => ({ value, amount })),
        window: { unit: 'Month' },
      },
    }
  })
  return [
    gateway(port),
    ...of('openai', { vendorA: {} }),
    ...of('anthropic', { vendorC: {} }),
    ...budgets,
  ]
}

/** What is done during a run, in order; the run is divided into as many parts. */
function faultsOf(scene: MoneyScene, customers: Customers, kills: Kill[]) {
  const [first, second, third] = proxyAddresses
  const killProxy = (address: string) => async () => {
    // While the ledger is out of reach, a proxy reports nothing, and loses more.
    await scene.counted(proxyNameOf(address))
    customers.leave(address)
    kills.push({ proxy: proxyNameOf(address), at: Date.now() })
    await scene.killProxy(address)
    await scene.startProxy(address)
    customers.comeBack(address)
  }
  const killNats = (forMs: number) => async () => {
    await scene.nats.kill()
    await after(forMs)
    await scene.nats.restart()
  }
  const killHolder = async () => scene.restart(await scene.holder())
  const killAll = async () => {
    await Promise.all(scene.replicas.map((name) => scene.restart(name)))
  }
  return [
    ['a proxy is killed', killProxy(first)],
    ['the holder of the lease is killed', killHolder],
    ['NATS is killed for 2 s', killNats(2_000)],
    ['another proxy is killed', killProxy(second)],
    ['all replicas are killed', killAll],
    ['NATS is killed for 5 s', killNats(5_000)],
    ['the first proxy is killed again', killProxy(first)],
    ['the holder of the lease is killed again', killHolder],
    ['the third proxy is killed', killProxy(third)],
  ] as const
}

/** Needs nats-server. */
export async function runMoney(options: MoneyOptions): Promise<MoneyResult> {
  const { seed, requests, tell } = options
  const random = randomFrom(seed)
  const vendor = await BillingVendor.start(random)
  const port = await stablePort()
  let scene: MoneyScene | undefined
  try {
    scene = await MoneyScene.start({ objects: objects(vendor, port, requests), catalog })
    return await spend(scene, vendor, { port, random }, options)
  } catch (error) {
    for (const words of scene?.lastWords() ?? []) tell(words)
    throw error
  } finally {
    closeClients()
    await scene?.dispose()
    await vendor.close()
  }
}

async function spend(
  scene: MoneyScene,
  vendor: BillingVendor,
  { port, random }: { readonly port: number; readonly random: () => number },
  { requests, withinMs, tell }: MoneyOptions,
): Promise<MoneyResult> {
  const began = performance.now()
  const kills: Kill[] = []
  const customers = new Customers({ teams, port, random })
  const faults = faultsOf(scene, customers, kills)
  await customers.warmUp(proxyAddresses)
  const isOver = () => performance.now() - began > withinMs
  let done = 0
  // Every fault happens in the midst of requests, however few are asked for.
  const isEnough = () => done === faults.length && vendor.bills.length >= requests
  customers.start(proxyAddresses, () => isEnough() || isOver())
  for (const [what, strike] of faults) {
    const at = (requests * (done + 1)) / (faults.length + 1)
    const timeAt = (withinMs * (done + 1)) / (faults.length + 1)
    await waitFor(
      `request ${at}`,
      () => vendor.bills.length >= at || performance.now() - began > timeAt,
      withinMs + patienceMs,
    )
    tell(
      `${((performance.now() - began) / 1_000).toFixed(0)} s, ${vendor.bills.length} requests billed: ${what}`,
    )
    await strike()
    done++
  }
  await customers.end()
  const seconds = (performance.now() - began) / 1_000
  tell(
    `${seconds.toFixed(0)} s, ${vendor.bills.length} requests billed; every team without much left spends the rest`,
  )
  await customers.exhaust(Object.values(narrow).flat(), proxyAddresses)
  const holders = await settledBooks(scene, vendor, kills)
  const books = compareBooks(vendor.bills, holders, kills)
  const problems = [...books.problems, ...falseRefusals(holders)]
  const verified = await sluice('budgets', 'verify', '--nats', scene.nats.url)
  if (verified.code !== 0)
    problems.push(`sluice budgets verify: ${verified.stdout}${verified.stderr}`)
  const { accounts, incomplete, lost, longestLossMs } = books
  return {
    ok: problems.length === 0,
    problems,
    billed: vendor.bills.length,
    seconds,
    refused: customers.refused,
    failed: customers.failed,
    faults: done,
    events: holders.fold.position,
    accounts,
    incomplete,
    lostRequests: Number(lost.Requests),
    lostUsd: usdText(lost.USD),
    longestLossMs,
  }
}

/** Reads the ledger until only charges of killed proxies are missing, or for a time. */
async function settledBooks(scene: MoneyScene, vendor: BillingVendor, kills: readonly Kill[]) {
  const log = await openNatsLog({ servers: scene.nats.url, log: 'ledger', create: false })
  const read = async () => {
    const holders = new Holders()
    for await (const recorded of log.read()) holders.take(recorded)
    return holders.finish()
  }
  let holders = await read()
  try {
    await waitFor('charges of all requests', async () => {
      holders = await read()
      return compareBooks(vendor.bills, holders, kills).problems.length === 0
    }).catch(() => undefined)
  } finally {
    await log.close()
  }
  return holders
}

/** A final refusal needs a budget of which at most a hundredth is free, or less than a few requests cost. */
function falseRefusals({ fold }: Holders): string[] {
  return [...fold.budgets.values()].flatMap((state) => {
    const { definition } = state
    const values: readonly string[] = narrow[definition.unit as keyof typeof narrow]
    const largest = { USD: 2_000_000_000n, Tokens: 200n, Requests: 1n }[definition.unit]
    return values.flatMap((value) => {
      const free = poolOf(state, value, fold.time)
      const limit = limitOf(definition, value)
      const allowed = limit / 100n > 3n * largest ? limit / 100n : 3n * largest
      return free <= allowed
        ? []
        : [`${definition.name}: ${value} was refused, though ${free} of ${limit} are free`]
    })
  })
}

export const lineOf = (result: MoneyResult): string => {
  const { ok, problems, billed, seconds, refused, failed, faults, events, accounts } = result
  const { incomplete, lostRequests, lostUsd, longestLossMs } = result
  const wrong = problems.slice(0, 20).map((text) => `\n    ${text}`)
  return `${ok ? 'ok    ' : 'FAILED'} money: ${billed} paid requests in ${seconds.toFixed(0)} s (${(billed / seconds).toFixed(0)} a second), ${refused} refused, ${failed} failed, ${faults} faults, ${events} events of the ledger; ${accounts} accounts compared, ${accounts - incomplete} agree to the last unit; killed proxies lost ${lostRequests} requests (${lostUsd} USD), none older than ${longestLossMs} ms${wrong.join('')}`
}
