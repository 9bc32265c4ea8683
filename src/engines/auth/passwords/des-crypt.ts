/**
 * The traditional crypt(3): 25 rounds of DES (FIPS 46-3) over a block of zeroes, with eight
 * characters of the password as the key. The salt swaps entries of the expansion table, so a
 * library's DES cannot be used. One byte holds one bit: that is slow, but easy to compare with the
 * tables of the standard, which count from 1.
 */
import { cryptDigits } from './crypt-alphabet.ts'

// biome-ignore-start format: tables as the standard prints them
const initialPermutation = [
  58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4, 62, 54, 46, 38, 30, 22, 14, 6, 64,
  56, 48, 40, 32, 24, 16, 8, 57, 49, 41, 33, 25, 17, 9, 1, 59, 51, 43, 35, 27, 19, 11, 3, 61, 53,
  45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7,
]
const finalPermutation = [
  40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31, 38, 6, 46, 14, 54, 22, 62, 30, 37,
  5, 45, 13, 53, 21, 61, 29, 36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27, 34, 2,
  42, 10, 50, 18, 58, 26, 33, 1, 41, 9, 49, 17, 57, 25,
]
const keyChoice1 = [
  57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60,
  52, 44, 36, 63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21,
  13, 5, 28, 20, 12, 4,
]
const keyChoice2 = [
  14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2, 41, 52,
  31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
]
const shifts = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1]
const expansion = [
  32, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9, 8, 9, 10, 11, 12, 13, 12, 13, 14, 15, 16, 17, 16, 17, 18, 19,
  20, 21, 20, 21, 22, 23, 24, 25, 24, 25, 26, 27, 28, 29, 28, 29, 30, 31, 32, 1,
]
const permutation = [
  16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19, 13,
  30, 6, 22, 11, 4, 25,
]
const boxes = [
  [
    14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7, 0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11,
    9, 5, 3, 8, 4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0, 15, 12, 8, 2, 4, 9, 1, 7, 5,
    11, 3, 14, 10, 0, 6, 13,
  ],
  [
    15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10, 3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10,
    6, 9, 11, 5, 0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15, 13, 8, 10, 1, 3, 15, 4, 2,
    11, 6, 7, 12, 0, 5, 14, 9,
  ],
  [
    10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8, 13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12,
    11, 15, 1, 13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7, 1, 10, 13, 0, 6, 9, 8, 7, 4,
    15, 14, 3, 11, 5, 2, 12,
  ],
  [
    7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15, 13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1,
    10, 14, 9, 10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4, 3, 15, 0, 6, 10, 1, 13, 8, 9,
    4, 5, 11, 12, 7, 2, 14,
  ],
  [
    2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9, 14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10,
    3, 9, 8, 6, 4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14, 11, 8, 12, 7, 1, 14, 2, 13, 6,
    15, 0, 9, 10, 4, 5, 3,
  ],
  [
    12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11, 10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14,
    0, 11, 3, 8, 9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6, 4, 3, 2, 12, 9, 5, 15, 10,
    11, 14, 1, 7, 6, 0, 8, 13,
  ],
  [
    4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1, 13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12,
    2, 15, 8, 6, 1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2, 6, 11, 13, 8, 1, 4, 10, 7, 9,
    5, 0, 15, 14, 2, 3, 12,
  ],
  [
    13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7, 1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11,
    0, 14, 9, 2, 7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8, 2, 1, 14, 7, 4, 10, 8, 13,
    15, 12, 9, 0, 3, 5, 6, 11,
  ],
]
// biome-ignore-end format: tables as the standard prints them

type Bits = Uint8Array<ArrayBuffer>

const pick = (bits: Bits, table: readonly number[]): Bits =>
  Uint8Array.from(table, (position) => bits[position - 1] ?? 0)

/** Returns the whole text of a hash: two characters of salt and eleven digits. */
export function desCrypt(password: Uint8Array, salt: string): string {
  const keys = keySchedule(password)
  const table = saltedExpansion(salt)
  let block: Bits = new Uint8Array(64)
  for (let round = 0; round < 25; round++) block = encrypt(block, keys, table)
  let text = salt.slice(0, 2)
  for (let digit = 0; digit < 11; digit++) {
    let value = 0
    for (let bit = 0; bit < 6; bit++) value = (value << 1) | (block[digit * 6 + bit] ?? 0)
    text += cryptDigits[value]
  }
  return text
}

function keySchedule(password: Uint8Array): Bits[] {
  const key = new Uint8Array(64)
  for (let at = 0; at < Math.min(8, password.length); at++) {
    for (let bit = 0; bit < 7; bit++) key[at * 8 + bit] = ((password[at] ?? 0) >> (6 - bit)) & 1
  }
  const chosen = pick(key, keyChoice1)
  let left = chosen.slice(0, 28)
  let right = chosen.slice(28)
  return shifts.map((by) => {
    left = rotate(left, by)
    right = rotate(right, by)
    return pick(Uint8Array.from([...left, ...right]), keyChoice2)
  })
}

const rotate = (half: Bits, by: number): Bits =>
  Uint8Array.from([...half.subarray(by), ...half.subarray(0, by)])

function saltedExpansion(salt: string): number[] {
  const table = [...expansion]
  for (let half = 0; half < 2; half++) {
    const value = cryptDigits.indexOf(salt[half] ?? '.')
    for (let bit = 0; bit < 6; bit++) {
      if (((value >> bit) & 1) === 0) continue
      const at = half * 6 + bit
      const [low = 0, high = 0] = [table[at], table[at + 24]]
      table[at] = high
      table[at + 24] = low
    }
  }
  return table
}

function encrypt(block: Bits, keys: readonly Bits[], table: readonly number[]): Bits {
  const start = pick(block, initialPermutation)
  let left = start.slice(0, 32)
  let right = start.slice(32)
  for (const key of keys) {
    const mixed = feistel(right, key, table)
    for (let bit = 0; bit < 32; bit++) mixed[bit] = (mixed[bit] ?? 0) ^ (left[bit] ?? 0)
    left = right
    right = mixed
  }
  return pick(Uint8Array.from([...right, ...left]), finalPermutation)
}

function feistel(half: Bits, key: Bits, table: readonly number[]): Bits {
  const wide = pick(half, table)
  const narrow = new Uint8Array(32)
  boxes.forEach((box, at) => {
    const bit = (index: number) => (wide[at * 6 + index] ?? 0) ^ (key[at * 6 + index] ?? 0)
    const row = (bit(0) << 1) | bit(5)
    const column = (bit(1) << 3) | (bit(2) << 2) | (bit(3) << 1) | bit(4)
    const value = box[row * 16 + column] ?? 0
    for (let index = 0; index < 4; index++) narrow[at * 4 + index] = (value >> (3 - index)) & 1
  })
  return pick(narrow, permutation)
}
