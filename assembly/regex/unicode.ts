// Unicode properties by name, out of the packed tables of unicode-data.ts.
import { MAX_CODE_POINT } from './codes'
import { readAt, readFrom, readNumber } from './packed-numbers'
import { addRange } from './ranges'
import { CATEGORY_BYTES, CATEGORY_RUNS, SCRIPT_BYTES, SCRIPT_COUNT, SCRIPT_NAMES, SCRIPT_RUNS } from './unicode-data'

// A property is a number: a mask of category bits; or a script's number under IS_SCRIPT; or ANY.
const IS_SCRIPT: i32 = 1 << 30
const ANY: i32 = IS_SCRIPT | 255

/** Two-letter names in the order of the category bits: LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCoCn. */
const CATEGORY_NAMES = memory.data<u8>([
  76, 117, 76, 108, 76, 116, 76, 109, 76, 111, 77, 110, 77, 99, 77, 101, 78, 100, 78, 108, 78, 111,
  80, 99, 80, 100, 80, 115, 80, 101, 80, 105, 80, 102, 80, 111, 83, 109, 83, 99, 83, 107, 83, 111,
  90, 115, 90, 108, 90, 112, 67, 99, 67, 102, 67, 115, 67, 111, 67, 110,
])
const CATEGORY_COUNT = 30
/** `Any`, `LC`, and the prefixes that JavaScript writes: `Script=`, `sc=`, `gc=`, `General_Category=`. */
const ANY_NAME = memory.data<u8>([65, 110, 121])
const CASED_NAME = memory.data<u8>([76, 67])
const SCRIPT_PREFIX = memory.data<u8>([83, 99, 114, 105, 112, 116, 61])
const SC_PREFIX = memory.data<u8>([115, 99, 61])
const GC_PREFIX = memory.data<u8>([103, 99, 61])
const CATEGORY_PREFIX = memory.data<u8>([71, 101, 110, 101, 114, 97, 108, 95, 67, 97, 116, 101, 103, 111, 114, 121, 61])

function startsWith(name: usize, length: i32, prefix: usize, prefixLength: i32): bool {
  return length > prefixLength && memory.compare(name, prefix, prefixLength) == 0
}

/** Returns the mask of the categories of a name of one or two letters; 0 if unknown. */
function categoryMask(name: usize, length: i32): i32 {
  if (length == 2 && memory.compare(name, CASED_NAME, 2) == 0) return 7
  let mask = 0
  if (length != 1 && length != 2) return 0
  for (let i = 0; i < CATEGORY_COUNT; i++) {
    if (memory.compare(name, CATEGORY_NAMES + (i << 1), length) == 0) mask |= 1 << i
  }
  return mask
}

function scriptNumber(name: usize, length: i32): i32 {
  let at = SCRIPT_NAMES
  for (let i: u32 = 1; i <= SCRIPT_COUNT; i++) {
    const size = <i32>load<u8>(at)
    if (size == length && memory.compare(name, at + 1, length) == 0) return IS_SCRIPT | <i32>i
    at += size + 1
  }
  return 0
}

/** Returns the property of that name, or 0. */
export function findProperty(name: usize, length: i32): i32 {
  if (length == 3 && memory.compare(name, ANY_NAME, 3) == 0) return ANY
  if (startsWith(name, length, SCRIPT_PREFIX, 7)) return scriptNumber(name + 7, length - 7)
  if (startsWith(name, length, SC_PREFIX, 3)) return scriptNumber(name + 3, length - 3)
  if (startsWith(name, length, GC_PREFIX, 3)) return categoryMask(name + 3, length - 3)
  if (startsWith(name, length, CATEGORY_PREFIX, 17)) return categoryMask(name + 17, length - 17)
  const mask = categoryMask(name, length)
  return mask == 0 ? scriptNumber(name, length) : mask
}

/** Appends the ranges of a property; reads its whole table. */
export function addProperty(property: i32): void {
  if (property == ANY) {
    addRange(0, MAX_CODE_POINT)
    return
  }
  const isScript = (property & IS_SCRIPT) != 0
  readFrom(isScript ? SCRIPT_RUNS : CATEGORY_RUNS)
  const end = isScript ? SCRIPT_RUNS + SCRIPT_BYTES : CATEGORY_RUNS + CATEGORY_BYTES
  let low: u32 = 0
  while (readAt < end) {
    const run = readNumber()
    const high = low + (run >> 6)
    const value = run & 63
    if (isScript ? value == (property & 255) : ((property >> value) & 1) != 0) addRange(low, high)
    low = high + 1
  }
}
