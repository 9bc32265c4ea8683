/**
 * Amounts of money. An amount is an integer number of 10⁻¹² USD, the smallest unit in which a price of one token can
 * be written, so that sums are exact. It is a `bigint`, because a `number` is exact only up to 9,007 USD.
 */
export type Money = bigint

/** Decimal places of the unit. */
const places = 12

const decimal = /^(\d{1,18})(?:\.(\d{1,12}))?$/

/** Reads an amount in USD, such as `12.50`; undefined if it is no decimal number with at most 12 places. */
export function readUsd(text: string): Money | undefined {
  const [, whole, fraction = ''] = decimal.exec(text) ?? []
  return whole === undefined ? undefined : BigInt(whole + fraction.padEnd(places, '0'))
}

/** Writes an amount in USD, exactly and without trailing zeros, such as `0.054399`. */
export function usdText(amount: Money): string {
  const sign = amount < 0n ? '-' : ''
  const digits = `${amount < 0n ? -amount : amount}`.padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0+$/, '')
  return `${sign}${digits.slice(0, -places)}${fraction === '' ? '' : `.${fraction}`}`
}

/** Returns an amount in USD as the nearest binary fraction, for expressions and charts. Never sum these. */
export const usdNumber = (amount: Money): number => Number(usdText(amount))

/** Writes an amount in USD rounded to some places, half up, such as `0.05` of 0.054399 for two places. */
export function usdRounded(amount: Money, shown: number): string {
  const unit = 10n ** BigInt(places - shown)
  const size = amount < 0n ? -amount : amount
  const rounded = ((size + unit / 2n) / unit) * unit
  const [whole = '', fraction = ''] = usdText(amount < 0n ? -rounded : rounded).split('.')
  return shown === 0 ? whole : `${whole}.${fraction.padEnd(shown, '0')}`
}
