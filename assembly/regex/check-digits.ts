// Check digits that national ids and VAT numbers share, of the characters that number-format.ts has collected.
import { isDigit } from './ascii'
import { characterOf, digitOf, numberOf, weighted } from './number-format'

/** Not all of the first characters are equal, as in examples. */
export function isVaried(count: i32): bool {
  for (let i = 1; i < count; i++) if (characterOf(i) != characterOf(0)) return true
  return false
}

/** Returns the index of a byte in an ASCII text, or -1. */
export function placeOf(byte: u32, bytes: string): i32 {
  for (let i = 0; i < bytes.length; i++) if (<u32>bytes.charCodeAt(i) == byte) return i
  return -1
}

/** Returns whether a byte is in an ASCII text. */
export function isOneOf(byte: u32, bytes: string): bool {
  return placeOf(byte, bytes) >= 0
}

/** ISO 7064, MOD 11,10: the check digit after `count` digits. Also of German VAT numbers. */
export function isMod1110(count: i32): bool {
  let product = 10
  for (let i = 0; i < count; i++) {
    const sum = (product + digitOf(i)) % 10
    product = ((sum == 0 ? 10 : sum) * 2) % 11
  }
  return (11 - product) % 10 == digitOf(count)
}

/** Luhn: every second digit from the right counts double. */
export function isLuhn(from: i32, count: i32): bool {
  let sum = 0
  for (let i = 0; i < count; i++) {
    const value = digitOf(from + count - 1 - i)
    sum += i & 1 ? (value > 4 ? value * 2 - 9 : value * 2) : value
  }
  return sum % 10 == 0
}

const NIF_LETTERS: string = 'TRWAGMYFPDXBNJZSQVHLCKE'

/** Returns whether a letter is the check letter of a number, which its remainder modulo 23 selects. */
export function isNifLetter(number: u64, letter: u32): bool {
  return number > 0 && letter == <u32>NIF_LETTERS.charCodeAt(<i32>(number % 23))
}

/** Spain: a DNI has eight digits; a NIE has X, Y or Z (for 0, 1 or 2) and seven digits. Both end with a check letter. */
export function isNif(from: i32 = 0): bool {
  const first = characterOf(from)
  const isForeign = !isDigit(first)
  if (isForeign && (first < 88 || first > 90)) return false
  const number = isForeign ? <u64>(first - 88) * 10000000 + numberOf(from + 1, 7) : numberOf(from, 8)
  return isNifLetter(number, characterOf(from + 8))
}

/** The Netherlands: the weight of the check digit is minus one. */
export function isBsn(): bool {
  return isVaried(9) && (weighted(0, '98765432') - digitOf(8)) % 11 == 0
}
