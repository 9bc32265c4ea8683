/** Converts Kubernetes quantities (apimachinery, resource.Quantity) to numbers. */

/** Describes the form of a number of bytes; completes "must be …". */
export const byteSizeForm = 'a number of bytes such as 2097152 or 2Mi'

const unsigned =
  '([0-9]{1,19}(\\.[0-9]{0,9})?|\\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?'

/** Matches the supported quantities; the number of digits is limited, so that parsing is cheap. */
export const quantityPattern = `^[+-]?${unsigned}$`

/** Matches quantities without a minus sign. */
export const amountPattern = `^[+]?${unsigned}$`

const parts = /^([+-]?)([0-9]*)\.?([0-9]*)(.*)$/
const form = new RegExp(quantityPattern)

const decimalExponents: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
}

const binaryExponents: Readonly<Record<string, number>> = {
  Ki: 10,
  Mi: 20,
  Gi: 30,
  Ti: 40,
  Pi: 50,
  Ei: 60,
}

/** Converts a quantity to a number, rounded up as Kubernetes does; undefined for all other values. */
export function quantityValue(text: unknown): number | undefined {
  if (typeof text !== 'string' || !form.test(text)) return undefined
  const [, sign = '', whole = '', fraction = '', suffix = ''] = parts.exec(text) ?? []
  const binary = binaryExponents[suffix]
  const decimal = binary === undefined ? decimalExponentOf(suffix) : 0
  const exponent = decimal - fraction.length
  // Computes with integers, because numbers such as 2.3M have no exact binary fraction.
  const digits = BigInt(`${whole}${fraction}`) << BigInt(binary ?? 0)
  const scale = 10n ** BigInt(Math.abs(exponent))
  const signed = sign === '-' ? -digits : digits
  return Number(exponent < 0 ? roundedUp(signed, scale) : signed * scale)
}

function decimalExponentOf(suffix: string): number {
  return decimalExponents[suffix] ?? Number(suffix.slice(1))
}

function roundedUp(value: bigint, by: bigint): bigint {
  const towardsZero = value / by
  return value > 0n && value % by !== 0n ? towardsZero + 1n : towardsZero
}
