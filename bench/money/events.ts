/** Budgets and events of a ledger for the measurements. */
import {
  budgetCharged,
  budgetDefined,
  budgetGranted,
  budgetOpened,
  type EventDefinition,
  type SluiceEvent,
} from '../../events/index.ts'
import { definitionOf } from '../../src/control/ledger/budget-state.ts'
import { newEvent } from '../../src/control/log/index.ts'
import type { BudgetConfig, BudgetWindow } from '../../src/ground/model/budgets.ts'

export const month: BudgetWindow = { type: 'Calendar', unit: 'Month', timeZone: 'Europe/Berlin' }
export const rollingDay: BudgetWindow = { type: 'Rolling', unit: 'Day', timeZone: 'UTC' }

const amount = `${10n ** 18n}`

export const budgetConfig = (number: number, window: BudgetWindow): BudgetConfig => ({
  id: `budget-${number}`,
  name: `bench/budget-${number}`,
  generation: 1,
  unit: 'USD',
  amount,
  overrides: {},
  window,
  onExceeded: 'Block',
})

export interface LedgerScene {
  readonly budgets: number
  /** Values of `each` of every budget. */
  readonly values: number
  readonly holders: number
  /** Charges in one report, which is one event. */
  readonly chargesAReport: number
  readonly window: BudgetWindow
}

const firstTime = Date.UTC(2026, 0, 5)
const holderName = (number: number): string => `proxy-${number}~00000000`

/** Writes the events of a ledger: first those of its budgets and holders, then reports. */
export class LedgerWriter {
  readonly #scene: LedgerScene
  #position = 0
  #charges = 0

  constructor(scene: LedgerScene) {
    this.#scene = scene
  }

  *beginning() {
    const { budgets, holders, window } = this.#scene
    for (let number = 0; number < budgets; number++) {
      const { id, ...definition } = definitionOf(budgetConfig(number, window))
      yield this.#event(budgetDefined, { budget: id, ...definition })
      yield this.#event(budgetOpened, { budget: id, window: 1 })
    }
    for (let holder = 0; holder < holders; holder++) {
      const share = Math.floor(500_000 / holders)
      const grants = Array.from({ length: budgets }, (_, number) => ({
        budget: `budget-${number}`,
        window: 1,
        share,
        generation: 1,
      }))
      yield this.#event(budgetGranted, { holder: holderName(holder), grants })
    }
  }

  /** The next report; holders report in turn. */
  report() {
    const { budgets, values, holders, chargesAReport } = this.#scene
    const number = this.#charges / chargesAReport
    const charges = Array.from({ length: chargesAReport }, () => {
      const charge = this.#charges++
      const budget = `budget-${charge % budgets}`
      const value = `team-${Math.floor(charge / budgets) % values}`
      return { budget, window: 1, value, charged: `${18_000_000 + (charge % 1_000)}`, requests: 1 }
    })
    const holder = holderName(number % holders)
    return this.#event(budgetCharged, {
      holder,
      sequence: 1 + Math.floor(number / holders),
      charges,
    })
  }

  #event<Data extends object>(definition: EventDefinition<string, Data>, data: Data) {
    const position = ++this.#position
    const clock = { now: () => firstTime + position * 10 }
    const writer = { source: '/bench', epoch: 0, clock }
    const about = { kind: 'Ledger', name: 'bench' }
    const event = newEvent(definition, writer, about, { id: `${position}`, data })
    return { position, event: event as SluiceEvent }
  }
}
