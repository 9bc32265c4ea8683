/** Defects to put into the code on purpose, which the simulation must find. */
import type { Mutation } from '../virtual-time/mutate.ts'

interface LedgerMutation extends Mutation {
  /** The first seed that found it when it was added. Another schedule may need a later one. */
  readonly firstSeed: number
}

export const mutations: Readonly<Record<string, LedgerMutation>> = {
  'a report is counted again if it is repeated': {
    file: 'src/control/ledger/ledger.ts',
    from: 'const id = pending.sequence > sequence',
    to: 'const id = false',
    firstSeed: 21,
  },
  'a new value forgets the shares of other holders': {
    file: 'src/control/ledger/ledger-fold.ts',
    from: 'if (amount > 0n) shares.push',
    to: 'if (amount < 0n) shares.push',
    firstSeed: 10,
  },
  'what is given back stays in use': {
    file: 'src/gateway/proxy/budgets/memory.ts',
    from: 'const found = Atomics.compareExchange(accounts, at, left, 0n)',
    to: 'const found = left',
    firstSeed: 2,
  },
  'allowances are never recalled': {
    file: 'src/control/ledger/decide.ts',
    from: "isRecall: isShort && isOwed && state === 'granted' && amount <= 0n",
    to: 'isRecall: false',
    firstSeed: 7,
  },
  'grants are appended wherever the log ends': {
    file: 'src/control/ledger/ledger.ts',
    from: 'await this.#append(events, position)',
    to: 'await this.#append(events)',
    firstSeed: 4,
  },
  'allowances are released while their holder may use them': {
    file: 'src/control/ledger/ledger.ts',
    from: 'const releaseMs = leaseMs + aliveMs + 25_000',
    to: 'const releaseMs = aliveMs + 5_000',
    firstSeed: 9,
  },
  'a holder uses its allowances without an answer': {
    file: 'src/gateway/proxy/budgets/budget-holder.ts',
    from: 'this.#accounts.setUnreachable(silentMs > leaseMs)',
    to: 'this.#accounts.setUnreachable(false)',
    firstSeed: 35,
  },
  'charges after a release are ignored': {
    file: 'src/control/ledger/ledger-fold.ts',
    from: 'known.sequence = sequence',
    to: 'known.sequence = sequence; if (known.isReleased) return nothing',
    firstSeed: 10,
  },
  'a holder forgets what it had spent before a release': {
    file: 'src/gateway/proxy/budgets/budget-holder.ts',
    from: 'this.#retired.add(this.#tenure)',
    to: '',
    firstSeed: 10,
  },
  'a soft limit is warned about whenever more is spent': {
    file: 'src/control/ledger/soft-limits.ts',
    from: 'if (before === undefined || before.limit < limit) return true',
    to: 'return true',
    firstSeed: 1,
  },
  'a holder counts as running as long as its connection is open': {
    file: 'src/control/ledger/ledger.ts',
    from: 'if (session.pending === report) session.pending = undefined',
    to: '',
    firstSeed: 12,
  },
  'a holder adds its earlier grants again': {
    file: 'src/gateway/proxy/budgets/tenure.ts',
    from: 'accounts.add(slot.account, granted - slot.granted)',
    to: 'accounts.add(slot.account, granted)',
    firstSeed: 2,
  },
}
