/**
 * The budgets of this proxy, in the main thread: opens accounts for workers, reports what they spend to the ledger, and
 * passes on what it grants.
 */
import { randomUUID } from 'node:crypto'
import { type ConnectLedger, leaseMs } from '../../../ground/model/budgets.ts'
import {
  type BudgetMemory,
  createBudgetMemory,
  createReservationMemory,
  type ReservationMemory,
  SharedAccounts,
} from './memory.ts'
import { Tenure } from './tenure.ts'
import type { AccountQuestion, AccountReply } from './worker-budgets.ts'

export interface BudgetHolderOptions {
  /** Name of the proxy. */
  readonly proxy: string
  readonly connect: ConnectLedger
  /** Whether no other proxy shares the budgets. */
  readonly isSole: boolean
  /** Tells all workers to forget the accounts of a budget, or of all budgets. */
  readonly forget: (budget: string | undefined) => void
}

const tickMs = 200
/** How long a question waits for a budget that the ledger has not sent yet. */
const firstWaitMs = 2_000
/** How long the end of the process waits for the ledger. */
const closeLimitMs = 2_000

export class BudgetHolder {
  readonly memory: BudgetMemory = createBudgetMemory()
  readonly #options: BudgetHolderOptions
  readonly #accounts = new SharedAccounts(this.memory)
  /** Numbers of accounts that were freed. */
  readonly #free: number[] = []
  #nextAccount = 0
  readonly #reservations = new Map<number, ReservationMemory>()
  readonly #retired = new Set<Tenure>()
  readonly #timer: NodeJS.Timeout
  #tenure: Tenure

  constructor(options: BudgetHolderOptions) {
    this.#options = options
    this.#tenure = this.#begin()
    this.#timer = setInterval(() => this.#tick(), tickMs)
  }

  #begin(): Tenure {
    const { proxy, connect, isSole, forget } = this.#options
    return new Tenure({
      holder: `${proxy}~${randomUUID().slice(0, 8)}`,
      connect,
      accounts: this.#accounts,
      take: () => this.#take(),
      free: (account) => this.#free.push(account),
      isSole,
      onWindow: forget,
      onReleased: () => this.#renew(),
    })
  }

  #take(): number | undefined {
    const { size } = this.#accounts
    return this.#free.pop() ?? (this.#nextAccount < size ? this.#nextAccount++ : undefined)
  }

  /** Continues under another name. What is reserved under the old one is still reported under it. */
  #renew(): void {
    this.#retired.add(this.#tenure)
    this.#tenure = this.#begin()
    this.#options.forget(undefined)
  }

  /** Memory for the reservations of a worker. */
  reservations(worker: number): ReservationMemory {
    const memory = this.#reservations.get(worker) ?? createReservationMemory()
    this.#reservations.set(worker, memory)
    return memory
  }

  /** Frees what a dead worker had reserved: nothing can be known of what these requests have cost. */
  workerDied(worker: number): void {
    const memory = this.#reservations.get(worker)
    if (memory === undefined) return
    for (const [at, number] of memory.accounts.entries()) {
      if (number === 0) continue
      this.#accounts.settle(number - 1, memory.amounts[at] ?? 0n, 0n, false)
      memory.accounts[at] = 0
    }
  }

  async find(question: AccountQuestion): Promise<AccountReply> {
    if (!this.#tenure.knows(question.budget)) await this.#known(question.budget)
    return this.#tenure.find(question)
  }

  /** Waits for a budget that has just been created. A budget that others share is not waited for. */
  async #known(budget: string): Promise<void> {
    const deadline = performance.now() + firstWaitMs
    while (this.#options.isSole && performance.now() < deadline) {
      if (this.#tenure.knows(budget)) return
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  #tick(): void {
    this.#tenure.tick()
    for (const tenure of this.#retired) {
      tenure.tick(true)
      if (!tenure.isSettled) continue
      tenure.close()
      this.#retired.delete(tenure)
    }
    const silentMs = performance.now() - this.#tenure.answeredAt
    this.#accounts.setUnreachable(silentMs > leaseMs)
  }

  /** Gives back all allowances. Resolves when the ledger has counted everything, or after a time limit. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    const deadline = performance.now() + closeLimitMs
    while (performance.now() < deadline) {
      this.#tenure.tick(true)
      if (this.#tenure.isSettled) break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    this.#tenure.close()
    for (const tenure of this.#retired) tenure.close()
  }
}
