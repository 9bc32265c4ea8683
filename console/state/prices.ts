/** The price list of models, if the process has one. */
import type { PriceList } from '../../src/past/prices/price-list.ts'
import { type ConsoleServer, ServerError } from '../source/server.ts'
import { served } from './served.ts'

interface Prices {
  readonly list?: PriceList
  /** Why the list cannot be used at the moment. */
  readonly problem?: string
}

/** @throws ServerError if the process does not answer */
export async function loadPrices(server: ConsoleServer, signal: AbortSignal): Promise<Prices> {
  if (served.value?.about.offers.prices !== true) return {}
  try {
    return { list: await server.prices(signal) }
  } catch (error) {
    if (error instanceof ServerError && error.status === 503) return { problem: error.message }
    throw error
  }
}

/** Formats amounts of a currency; small ones with more digits. */
export function moneyFormat(currency: string): (amount: number) => string {
  const options = { style: 'currency', currency } as const
  const whole = new Intl.NumberFormat('en', options)
  const small = new Intl.NumberFormat('en', { ...options, maximumSignificantDigits: 3 })
  return (amount) => (amount < 1 ? small : whole).format(amount)
}
