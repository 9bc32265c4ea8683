/**
 * What really happened: every request that a proxy has admitted, what was reserved for it, and what it has cost. The
 * ledger is compared with it.
 */
import type { SluiceEvent } from '../../events/index.ts'
import { outstandingOf } from '../../src/control/actors/holdings.ts'
import { valueBalance } from '../../src/control/ledger/balances.ts'
import { balanceOf, LedgerFold, poolOf } from '../../src/control/ledger/ledger-fold.ts'
import { type BudgetConfig, limitOf } from '../../src/ground/model/budgets.ts'
import type { World } from '../virtual-time/world.ts'

/** One value of a budget. */
interface Account {
  spent: bigint
  /** Reserved by requests under way. */
  reserved: bigint
  /** By how much requests have cost more than was reserved for them. */
  overshoot: bigint
  /** What holders had spent or reserved, but not reported, when their allowances were released. */
  unreported: bigint
}

/** What a holder does with an account. */
interface Use {
  spent: bigint
  reserved: bigint
  /** By how much its requests have cost more than was reserved for them. */
  overshoot: bigint
}

const keyOf = (budget: string, value: string) => `${budget}/${value}`

export class Truth {
  readonly #world: World
  readonly budgets: readonly BudgetConfig[]
  readonly #accounts = new Map<string, Account>()
  /** By holder and account. */
  readonly #holders = new Map<string, Map<string, Use>>()
  /** What each holder has reported, by account. */
  readonly #reported = new Map<string, Map<string, bigint>>()
  /** Holders whose process has died. They may not have reported everything. */
  readonly crashed = new Set<string>()
  /** The fold of the stored log. */
  readonly reference = new LedgerFold()
  readonly #sequences = new Set<string>()
  readonly #warned = new Set<string>()
  /** Whether the server has forgotten ids of messages, so that the log may have a report twice. */
  mayRepeat = false
  /** Holders whose allowances are released. */
  readonly #released = new Set<string>()
  admitted = 0
  refused = 0
  released = 0

  constructor(world: World, budgets: readonly BudgetConfig[]) {
    this.#world = world
    this.budgets = budgets
  }

  account(budget: string, value: string): Account {
    const key = keyOf(budget, value)
    const known = this.#accounts.get(key)
    if (known !== undefined) return known
    const account = { spent: 0n, reserved: 0n, overshoot: 0n, unreported: 0n }
    this.#accounts.set(key, account)
    return account
  }

  #of(holder: string, key: string) {
    const accounts = this.#holders.get(holder) ?? new Map()
    this.#holders.set(holder, accounts)
    const own = accounts.get(key) ?? { spent: 0n, reserved: 0n, overshoot: 0n }
    accounts.set(key, own)
    return own
  }

  /**
   * A request was admitted. Checks that no more is admitted than the budget allows. Only a proxy that was suspended
   * may for a moment use allowances that are released.
   */
  reserve(
    holder: string,
    config: BudgetConfig,
    value: string,
    { amount, isJustAwake }: { amount: bigint; isJustAwake: boolean },
  ): void {
    if (this.#released.has(holder) && !isJustAwake) {
      this.#world.fail(`${holder} admits a request after its allowances were released`)
    }
    const account = this.account(config.id, value)
    account.reserved += amount
    const own = this.#of(holder, keyOf(config.id, value))
    own.reserved += amount
    this.admitted++
    if (config.window.unit !== 'Month') return
    this.#checkAllowance(holder, config, value, own)
    const { spent, reserved, overshoot, unreported } = account
    const most = limitOf(config, value) + overshoot + unreported
    if (spent + reserved > most) {
      const what = `${spent} spent and ${reserved} reserved of ${limitOf(config, value)}`
      this.#world.fail(
        `${keyOf(config.name, value)} is overdrawn by ${holder}: ${what}, overshoot ${overshoot}, not reported ${unreported}`,
      )
    }
  }

  /** What a holder admits comes from what the log has granted to it, and that it has not given back. */
  #checkAllowance(holder: string, config: BudgetConfig, value: string, own: Use): void {
    const budget = this.reference.budgets.get(config.id)
    if (budget === undefined || this.#released.has(holder)) return
    const holding = balanceOf(budget, value).context.holdings.get(holder)
    const allowance = holding === undefined ? 0n : holding.granted - holding.returned
    if (own.spent + own.reserved <= allowance) return
    const what = `${own.spent} spent and ${own.reserved} reserved of ${allowance}`
    this.#world.fail(`${holder} uses more of ${keyOf(config.name, value)} than it holds: ${what}`)
  }

  /** A request has ended; it was charged `actual`. */
  settle(
    holder: string,
    config: BudgetConfig,
    value: string,
    { amount, actual }: { amount: bigint; actual: bigint },
  ): void {
    const account = this.account(config.id, value)
    account.reserved -= amount
    account.spent += actual
    if (actual > amount) account.overshoot += actual - amount
    const own = this.#of(holder, keyOf(config.id, value))
    own.reserved -= amount
    own.spent += actual
    if (actual > amount) own.overshoot += actual - amount
  }

  /** A process has died with its requests. */
  crash(holder: string): void {
    this.crashed.add(holder)
    for (const [key, own] of this.#holders.get(holder) ?? []) {
      const account = this.#accounts.get(key)
      if (account !== undefined) account.reserved -= own.reserved
      own.reserved = 0n
    }
  }

  /** An event was stored. Checks that no report is counted twice, and that no more is granted than is free. */
  stored(position: number, event: SluiceEvent): void {
    if (event.type === 'dev.sluice.budget.granted.v1') this.#checkGrants(event.data)
    if (event.type === 'dev.sluice.budget.released.v1') this.#checkRelease(event.data.holder)
    if (event.type === 'dev.sluice.budget.warned.v1') this.#checkWarning(event.data)
    this.reference.apply({ position, event })
    this.#checkShares()
    if (event.type === 'dev.sluice.budget.charged.v1') this.#count(event.data)
    if (event.type === 'dev.sluice.budget.released.v1') this.#release(event.data.holder)
  }

  #checkGrants({
    holder,
    grants,
  }: (SluiceEvent & { type: 'dev.sluice.budget.granted.v1' })['data']): void {
    for (const { budget: id, window, value, amount } of grants) {
      const budget = this.reference.budgets.get(id)
      if (budget?.window !== window || value === undefined || amount === undefined) continue
      const pool = poolOf(budget, value, this.reference.time)
      if (BigInt(amount) > pool) {
        this.#world.fail(`${holder} is granted ${amount} of ${keyOf(id, value)}: ${pool} are free`)
      }
    }
  }

  /** Each soft limit is warned about once, after that much was charged. */
  #checkWarning(data: (SluiceEvent & { type: 'dev.sluice.budget.warned.v1' })['data']): void {
    const { budget: id, window, value, percent, limit } = data
    const key = `${keyOf(id, value)} ${window} ${percent}`
    if (this.#warned.has(key)) this.#world.fail(`${key} % is warned about twice`)
    this.#warned.add(key)
    const budget = this.reference.budgets.get(id)
    const spent = budget && valueBalance(budget, value, this.reference.time).spent
    if (spent === undefined || spent * 100n < BigInt(limit) * BigInt(percent)) {
      this.#world.fail(`${key} % is warned about when ${spent} are spent`)
    }
  }

  /** Checks, after a calm, that every soft limit that is reached was warned about. */
  checkWarnings(): void {
    for (const { id, softLimits = [] } of this.budgets) {
      const budget = this.reference.budgets.get(id)
      for (const value of budget?.balances.keys() ?? []) {
        if (budget === undefined) continue
        const { spent, limit } = valueBalance(budget, value, this.reference.time)
        for (const { percent } of softLimits) {
          const isReached = spent > 0n && spent * 100n >= limit * BigInt(percent)
          if (isReached && !this.#warned.has(`${keyOf(id, value)} ${budget.window} ${percent}`)) {
            this.#world.fail(`${keyOf(id, value)}: ${percent} % is reached without a warning`)
          }
        }
      }
    }
  }

  /** The shares of new values of all holders must not be more than the whole. */
  #checkShares(): void {
    for (const { id, shares } of this.reference.budgets.values()) {
      let sum = 0
      for (const own of shares.values()) sum += Math.max(...own.map(({ share }) => share))
      if (sum > 1_000_000) this.#world.fail(`${sum} millionths of budget ${id} are shares`)
    }
  }

  #count({
    holder,
    sequence,
    charges,
  }: (SluiceEvent & { type: 'dev.sluice.budget.charged.v1' })['data']) {
    if (charges.length === 0) return
    const id = `${holder}:${sequence}`
    if (this.#sequences.has(id)) {
      if (!this.mayRepeat) this.#world.fail(`report ${id} is in the log twice`)
      return
    }
    this.#sequences.add(id)
    const reported = this.#reported.get(holder) ?? new Map<string, bigint>()
    this.#reported.set(holder, reported)
    for (const { budget, value, charged = '0' } of charges) {
      const key = keyOf(budget, value)
      reported.set(key, (reported.get(key) ?? 0n) + BigInt(charged))
      const { spent } = this.#of(holder, key)
      if ((reported.get(key) ?? 0n) > spent) {
        this.#world.fail(
          `${holder} has spent ${spent} of ${key}, but was charged ${reported.get(key)}`,
        )
      }
    }
  }

  /** What a holder has not reported is at most what is outstanding to it, and what requests have cost beyond that. */
  #checkRelease(holder: string): void {
    for (const config of this.budgets.filter(({ window }) => window.unit === 'Month')) {
      const budget = this.reference.budgets.get(config.id)
      for (const [value, { context }] of budget?.balances ?? []) {
        const holding = context.holdings.get(holder)
        const { spent, reserved, overshoot } = this.#of(holder, keyOf(config.id, value))
        if (holding === undefined || this.#released.has(holder)) continue
        const hidden = spent + reserved - holding.charged
        const most = outstandingOf(holding) + overshoot
        if (hidden <= most) continue
        this.#world.fail(
          `${holder} is released with ${hidden} of ${keyOf(config.name, value)} that it has not reported: it held ${most}`,
        )
      }
    }
  }

  /** What a holder has not reported by now can be granted to others again. */
  #release(holder: string): void {
    this.released++
    this.#released.add(holder)
    for (const [key, { spent, reserved }] of this.#holders.get(holder) ?? []) {
      const lost = spent + reserved - (this.#reported.get(holder)?.get(key) ?? 0n)
      const account = this.#accounts.get(key)
      if (account !== undefined) account.unreported += lost
    }
  }

  /** Checks, after a calm, that everything was charged that a living proxy has spent. */
  checkCharges(): void {
    for (const [holder, accounts] of this.#holders) {
      if (this.crashed.has(holder)) continue
      for (const [key, { spent }] of accounts) {
        const charged = this.#reported.get(holder)?.get(key) ?? 0n
        if (charged !== spent) {
          this.#world.fail(`${holder} has spent ${spent} of ${key}, and was charged ${charged}`)
        }
      }
    }
    for (const { id, name } of this.budgets) {
      const budget = this.reference.budgets.get(id)
      let sum = 0n
      for (const reported of this.#reported.values()) {
        for (const [key, charged] of reported) if (key.startsWith(`${id}/`)) sum += charged
      }
      if (budget !== undefined && budget.charged !== sum) {
        this.#world.fail(`${name}: reports have ${sum}, the ledger has ${budget.charged}`)
      }
    }
  }

  /** What is left of a value; negative if it is overdrawn. */
  left(config: BudgetConfig, value: string): bigint {
    const { spent, reserved } = this.account(config.id, value)
    return limitOf(config, value) - spent - reserved
  }

  get holders(): Iterable<string> {
    return this.#holders.keys()
  }
}
