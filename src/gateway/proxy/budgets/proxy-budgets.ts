/** Connects the budgets of a proxy to its workers. Nothing is opened before a worker has a budget. */
import { BudgetHolder, type BudgetHolderOptions } from './budget-holder.ts'
import type { AccountQuestion, BudgetMessage, BudgetQuestion } from './worker-budgets.ts'

type Options = Omit<BudgetHolderOptions, 'forget' | 'connect' | 'isSole'> &
  Partial<Pick<BudgetHolderOptions, 'connect' | 'isSole'>>

/** Sends a message to one worker, or to all. */
type Send = (worker: number | undefined, message: BudgetMessage) => void

/** Without a ledger, no allowance is ever granted. */
const noLedger: BudgetHolderOptions['connect'] = () => ({
  report: () => undefined,
  close: () => undefined,
})

export class ProxyBudgets {
  readonly #options: Options
  readonly #send: Send
  #holder: BudgetHolder | undefined

  constructor(options: Options, send: Send) {
    this.#options = options
    this.#send = send
  }

  receive(worker: number, message: BudgetQuestion): void {
    const holder = this.#open()
    if (message.type === 'budget-account') {
      this.#answer(holder, worker, message.question)
      return
    }
    const reservations = holder.reservations(worker)
    this.#send(worker, { type: 'budgets', memory: holder.memory, reservations })
  }

  async #answer(holder: BudgetHolder, worker: number, question: AccountQuestion): Promise<void> {
    this.#send(worker, { type: 'budget-account', reply: await holder.find(question) })
  }

  #open(): BudgetHolder {
    this.#holder ??= new BudgetHolder({
      connect: noLedger,
      isSole: false,
      ...this.#options,
      forget: (budget) => this.#send(undefined, { type: 'budget-window', budget }),
    })
    return this.#holder
  }

  workerDied(worker: number): void {
    this.#holder?.workerDied(worker)
  }

  /** Gives back all allowances. */
  async close(): Promise<void> {
    await this.#holder?.close()
    this.#holder = undefined
  }
}
