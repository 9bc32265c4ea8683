/** What a catalog cannot have of a public list, and why. */
import { isObject } from '../../ground/base/json-object.ts'
import { readDecimal } from './decimal.ts'
import type { Fields } from './list.ts'

/** Maximum number of lines about single prices. */
const maxPrices = 20

export class Losses {
  /** Names of models by what is lost of them. */
  readonly #grouped = new Map<string, string[]>()
  readonly #prices: string[] = []

  leaveOut(model: string, why: string): void {
    this.#add(`models ${why}`, model)
  }

  /** A price of a kind that catalogs do not have. */
  leaveOutField(model: string, field: string): void {
    this.#add(`${field}, which catalogs do not have`, model)
  }

  /** Checks a price: it may be rounded, or no price at all. */
  checkPrice(model: string, field: string, value: unknown, shift: number): void {
    const read = readDecimal(value, shift)
    if (read?.isRounded === false) return
    const what = read === undefined ? 'is left out: no price of a catalog' : `becomes ${read.text}`
    this.#prices.push(`${model}: ${field} ${JSON.stringify(value)} ${what}`)
  }

  /** Checks all prices of an object with nothing else, and of the objects in it. */
  checkPrices(model: string, prices: Fields, shift: number, path = ''): void {
    for (const [name, value] of Object.entries(prices)) {
      if (isObject(value)) this.checkPrices(model, value, shift, `${path}${name}.`)
      else if (typeof value === 'number' || typeof value === 'string') {
        this.checkPrice(model, `${path}${name}`, value, shift)
      }
    }
  }

  #add(what: string, model: string): void {
    const models = this.#grouped.get(what) ?? []
    this.#grouped.set(what, models)
    models.push(model)
  }

  lines(): string[] {
    const more = this.#prices.length - maxPrices
    return [
      ...[...this.#grouped].map(([what, models]) => {
        const names = models.slice(0, 3).join(', ')
        return `left out ${what}: ${names}${models.length > 3 ? ` and ${models.length - 3} more` : ''}`
      }),
      ...this.#prices.slice(0, maxPrices),
      ...(more > 0 ? [`${more} more prices are rounded or left out`] : []),
    ]
  }
}
