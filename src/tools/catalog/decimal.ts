/** Decimal numbers as text. Prices are never computed with binary fractions. */

/** Places after the point that catalogs have. */
const places = 6

/**
 * Returns a number times ten to the power of `shift`, rounded to the places of a catalog; undefined if it is
 * negative, or so small that it would be rounded to 0.
 */
export const decimalOf = (value: unknown, shift = 0): string | undefined =>
  readDecimal(value, shift)?.text

/** Like `decimalOf`, and says whether the number, as its shortest notation reads, has more places. */
export function readDecimal(
  value: unknown,
  shift: number,
): { readonly text: string; readonly isRounded: boolean } | undefined {
  const text = typeof value === 'number' || typeof value === 'string' ? String(value).trim() : ''
  const [, whole, fraction = '', exponent = '0'] =
    /^(\d+)(?:\.(\d*))?(?:e([+-]?\d{1,3}))?$/i.exec(text) ?? []
  if (whole === undefined) return undefined
  const point = whole.length + Number(exponent) + shift
  const digits = whole + fraction
  const padded = digits.padEnd(Math.max(point, 0), '0')
  const before = point <= 0 ? '' : padded.slice(0, point)
  const after = (point <= 0 ? '0'.repeat(-point) + padded : padded.slice(point)).replace(/0+$/, '')
  const isRounded = after.length > places
  const scaled =
    BigInt(`${before}${after.slice(0, places).padEnd(places, '0')}`) +
    (isRounded && Number(after[places]) >= 5 ? 1n : 0n)
  if (isRounded && scaled === 0n) return undefined
  const all = `${scaled}`.padStart(places + 1, '0')
  const rest = all.slice(-places).replace(/0+$/, '')
  const integer = all.slice(0, -places)
  return { text: rest === '' ? integer : `${integer}.${rest}`, isRounded }
}
