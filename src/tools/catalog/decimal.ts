/** Decimal numbers as text. Prices are never computed with binary fractions. */

/** Places after the point that catalogs have. */
const places = 6

/**
 * Returns a number times ten to the power of `shift`, exactly as its shortest notation reads; undefined if it is
 * negative or needs more places than a catalog has.
 */
export function decimalOf(value: unknown, shift = 0): string | undefined {
  const text = typeof value === 'number' || typeof value === 'string' ? String(value).trim() : ''
  const [, whole, fraction = '', exponent = '0'] =
    /^(\d+)(?:\.(\d*))?(?:e([+-]?\d{1,3}))?$/i.exec(text) ?? []
  if (whole === undefined) return undefined
  const point = whole.length + Number(exponent) + shift
  const digits = whole + fraction
  const padded = digits.padEnd(Math.max(point, 0), '0')
  const before = point <= 0 ? '' : padded.slice(0, point)
  const after = (point <= 0 ? '0'.repeat(-point) + padded : padded.slice(point)).replace(/0+$/, '')
  if (after.length > places) return undefined
  const integer = before.replace(/^0+(?=\d)/, '') || '0'
  return after === '' ? integer : `${integer}.${after}`
}
