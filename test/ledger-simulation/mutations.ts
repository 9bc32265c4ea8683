/** Defects to put into the code on purpose, which the simulation must find. */
import type { Mutation } from '../virtual-time/mutate.ts'

export const mutations: Readonly<Record<string, Mutation>> = {
  'a report is counted again if it is repeated': {
    file: 'src/control/ledger/ledger.ts',
    from: 'const id = pending.sequence > sequence',
    to: 'const id = false',
  },
  'a new value forgets the shares of other holders': {
    file: 'src/control/ledger/ledger-fold.ts',
    from: 'if (amount > 0n) grants.set',
    to: 'if (amount < 0n) grants.set',
  },
  'what is given back stays in use': {
    file: 'src/gateway/proxy/budgets/memory.ts',
    from: 'const found = Atomics.compareExchange(accounts, at, left, 0n)',
    to: 'const found = left',
  },
  'allowances are never recalled': {
    file: 'src/control/ledger/decide.ts',
    from: "isRecall: isShort && isOwed && state === 'granted' && amount <= 0n",
    to: 'isRecall: false',
  },
  'grants are appended wherever the log ends': {
    file: 'src/control/ledger/ledger.ts',
    from: 'await this.#append(events, position)',
    to: 'await this.#append(events)',
  },
  'allowances are released while their holder may use them': {
    file: 'src/control/ledger/ledger.ts',
    from: 'const releaseMs = leaseMs + aliveMs + 25_000',
    to: 'const releaseMs = aliveMs + 5_000',
  },
  'a holder uses its allowances without an answer': {
    file: 'src/gateway/proxy/budgets/budget-holder.ts',
    from: 'this.#accounts.setUnreachable(silentMs > leaseMs)',
    to: 'this.#accounts.setUnreachable(false)',
  },
  'charges after a release are ignored': {
    file: 'src/control/ledger/ledger-fold.ts',
    from: 'known.sequence = sequence',
    to: 'known.sequence = sequence; if (known.isReleased) return nothing',
  },
  'a holder forgets what it had spent before a release': {
    file: 'src/gateway/proxy/budgets/budget-holder.ts',
    from: 'this.#retired.add(this.#tenure)',
    to: '',
  },
  'a soft limit is warned about whenever more is spent': {
    file: 'src/control/ledger/soft-limits.ts',
    from: 'if (before === undefined || before.limit < limit) return true',
    to: 'return true',
  },
  'a holder counts as running as long as its connection is open': {
    file: 'src/control/ledger/ledger.ts',
    from: 'if (session.pending === report) session.pending = undefined',
    to: '',
  },
  'a holder adds its earlier grants again': {
    file: 'src/gateway/proxy/budgets/tenure.ts',
    from: 'accounts.add(slot.account, granted - slot.granted)',
    to: 'accounts.add(slot.account, granted)',
  },
}
