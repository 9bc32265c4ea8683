/** An hour without the store of the ledger, on a virtual clock: what is admitted, and that nothing is lost or counted twice. */
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { definitionOf } from '../../src/control/ledger/budget-state.ts'
import { Ledger } from '../../src/control/ledger/ledger.ts'
import { type EventLog, LogError, MemoryLog } from '../../src/control/log/index.ts'
import { BudgetHolder } from '../../src/gateway/proxy/budgets/budget-holder.ts'
import { WorkerBudgets } from '../../src/gateway/proxy/budgets/worker-budgets.ts'
import type { BudgetConfig } from '../../src/ground/model/budgets.ts'

const common = {
  generation: 1,
  unit: 'Requests',
  amount: '100',
  overrides: {},
  window: { type: 'Calendar', unit: 'Month', timeZone: 'UTC' },
  onExceeded: 'Block',
} as const
const closed: BudgetConfig = { ...common, id: 'closed', name: 'default/closed' }
const open: BudgetConfig = { ...common, id: 'open', name: 'default/open', failOpenAmount: '7' }

/** A store that can be away: nothing can be appended then. */
function unsteady(log: EventLog): { readonly log: EventLog; isAway: boolean } {
  const store = { log, isAway: false }
  const append = log.append.bind(log)
  log.append = async (...events) => {
    if (store.isAway) throw new LogError('storage', 'the server is away')
    return append(...events)
  }
  return store
}

function proxyOf(ledger: Ledger) {
  const worker: WorkerBudgets = new WorkerBudgets((message) => {
    if (message.type === 'budgets') {
      const { memory } = holder
      worker.receive({ type: 'budgets', memory, reservations: holder.reservations(0) })
    } else {
      const { question } = message
      void holder.find(question).then((reply) => worker.receive({ type: 'budget-account', reply }))
    }
  })
  const holder: BudgetHolder = new BudgetHolder({
    proxy: 'p',
    isSole: false,
    connect: (name, receive) => ledger.connect(name, receive),
    forget: (budget) => worker.receive({ type: 'budget-window', budget }),
  })
  worker.begin()
  const admitted = new Map([closed, open].map(({ id }) => [id, 0]))
  /** Sends a request. Returns whether it was admitted, or why not. */
  const ask = async (config: BudgetConfig): Promise<string> => {
    const account = await worker.account(config, '')
    const overdraft =
      config.failOpenAmount === undefined ? undefined : BigInt(config.failOpenAmount)
    const found = account.reserve(1n, overdraft)
    if (typeof found !== 'object') return found
    found.settle(1n)
    admitted.set(config.id, (admitted.get(config.id) ?? 0) + 1)
    return 'admitted'
  }
  return { holder, admitted, ask }
}

/** Lets virtual time pass. */
async function pass(seconds: number): Promise<void> {
  for (let step = 0; step < seconds * 2; step++) {
    vi.advanceTimersByTime(500)
    for (let at = 0; at < 6; at++) await turn()
  }
}

afterEach(() => {
  vi.useRealTimers()
})

describe('an hour without the store of the ledger', () => {
  it('refuses after 45 s, or admits up to failOpenAmount more, and charges all of it later, once', async () => {
    vi.useFakeTimers({
      toFake: ['Date', 'performance', 'setInterval', 'clearInterval'],
      now: Date.UTC(2026, 5, 10),
    })
    const problems: (string | undefined)[] = []
    const store = unsteady(new MemoryLog())
    const { log } = store
    const onProblem = (text: string | undefined) => problems.push(text)
    const ledger = await new Ledger({ log, isSole: false, onProblem }).open()
    ledger.configure(new Map([closed, open].map((config) => [config.id, definitionOf(config)])))
    const { holder, admitted, ask } = proxyOf(ledger)
    await pass(3)
    for (const config of [closed, open]) expect(await ask(config)).toBe('admitted')
    await pass(1)

    store.isAway = true
    for (const config of [closed, open]) expect(await ask(config)).toBe('admitted')
    await pass(50)
    expect(await ask(closed)).toBe('unreachable')
    const before = admitted.get('open') ?? 0
    while ((await ask(open)) === 'admitted');
    const most = [...(ledger.fold.budgets.get('open')?.balances.values() ?? [])]
    const [[, holding] = []] = [...(most[0]?.context.holdings ?? [])]
    // What was granted, and 7 more.
    expect(admitted.get('open')).toBe(Number(holding?.granted) + 7)
    expect(admitted.get('open')).toBeGreaterThan(before + 7)
    await pass(3_550)
    expect([await ask(closed), await ask(open)]).toEqual(['unreachable', 'unreachable'])
    expect(problems).toEqual(['the ledger cannot be written: the server is away'])

    store.isAway = false
    await pass(20)
    const charged = () => [closed, open].map(({ id }) => ledger.fold.budgets.get(id)?.charged)
    const spent = () => [closed, open].map(({ id }) => BigInt(admitted.get(id) ?? 0))
    expect(charged()).toEqual(spent())
    expect(problems).toEqual(['the ledger cannot be written: the server is away', undefined])
    // All that is left is admitted, and no more.
    for (let at = 0; at < 400; at++) {
      for (const config of [closed, open]) await ask(config)
      if (at % 20 === 0) await pass(1)
    }
    await pass(5)
    expect([admitted.get('closed'), admitted.get('open')]).toEqual([100, 100])
    expect(charged()).toEqual(spent())
    void holder.close()
    await ledger.close()
  }, 60_000)
})
