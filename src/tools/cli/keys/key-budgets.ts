/** Writes the budgets of imported keys as GatewayBudgets. */
import { existsSync, writeFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { gatewayGroup, ownGroup } from '../../../ground/model/api-names.ts'
import { budgetFields, type ConvertedBudget } from '../../import/budgets.ts'
import { UsageError } from '../shared/output.ts'

interface KeyBudget extends ConvertedBudget {
  /** Value of `apiKey.id`. */
  readonly id: string
}

/** Maximum number of keys of a GatewayBudget. Names are long, and its expression has all of them. */
const maxKeys = 50

/** The budgets of the keys of one import, and the new file to which they are written. */
export class KeyBudgets {
  readonly #path: string
  readonly #target: { readonly kind: string; readonly name: string }
  readonly #namespace: string | undefined
  readonly #budgets: KeyBudget[] = []

  /** @throws UsageError if the file exists, or if the target is not written as `KIND/NAME` */
  constructor(path: string, target: string, namespace: string | undefined) {
    if (existsSync(path)) throw new UsageError(`${path} exists; choose another file`)
    const [, kind = '', name = ''] = /^(Gateway|HTTPRoute)\/([-.a-z0-9]+)$/.exec(target) ?? []
    if (name === '') {
      throw new UsageError(`--budget-target ${target}: expected Gateway/NAME or HTTPRoute/NAME`)
    }
    this.#path = path
    this.#target = { kind, name }
    this.#namespace = namespace
  }

  add(budget: KeyBudget): void {
    this.#budgets.push(budget)
  }

  /** Writes the file, if any key has a budget. Returns the number of keys with one. */
  write(): number {
    const manifests = [...Map.groupBy(this.#budgets, ({ unit }) => unit)].flatMap(([unit, all]) =>
      chunksOf(all).map((budgets, at) => this.#manifest(unit, budgets, at + 1)),
    )
    if (manifests.length === 0) return 0
    try {
      writeFileSync(this.#path, manifests.map((manifest) => stringify(manifest)).join('---\n'), {
        flag: 'wx',
      })
    } catch (error) {
      throw new UsageError(`${this.#path}: ${(error as Error).message}`)
    }
    return this.#budgets.length
  }

  #manifest(unit: string, budgets: readonly KeyBudget[], number: number): object {
    const [{ amount } = { amount: '0' }] = budgets
    const others = budgets.filter((budget) => budget.amount !== amount)
    return {
      apiVersion: `${ownGroup}/v1alpha1`,
      kind: 'GatewayBudget',
      metadata: {
        name: `keys-per-${unit.toLowerCase()}-${number}`,
        ...(this.#namespace !== undefined && { namespace: this.#namespace }),
      },
      spec: {
        targetRefs: [{ group: gatewayGroup, ...this.#target }],
        when: `apiKey != null && apiKey.id in ${JSON.stringify(budgets.map(({ id }) => id))}`,
        each: 'apiKey.id',
        ...budgetFields({ amount, unit }),
        ...(others.length > 0 && {
          overrides: others.map(({ id, amount: own }) => ({ value: id, amount: own })),
        }),
      },
    }
  }
}

function chunksOf<Item>(items: readonly Item[]): Item[][] {
  const count = Math.ceil(items.length / maxKeys)
  return Array.from({ length: count }, (_, at) => items.slice(at * maxKeys, (at + 1) * maxKeys))
}
