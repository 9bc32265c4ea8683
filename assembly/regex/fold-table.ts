// Simple case folding, out of the packed table of unicode-data.ts.
import { readFrom, readNumber } from './packed-numbers'
import { FOLD_COUNT, FOLD_RUNS } from './unicode-data'

/** low u32 | high u32 | stride u32 | delta i32, unpacked at first use. */
const FOLD_TABLE = memory.data(FOLD_COUNT * 16)
let isUnpacked: bool = false

function unpack(): void {
  isUnpacked = true
  readFrom(FOLD_RUNS)
  for (let i: u32 = 0; i < FOLD_COUNT; i++) {
    const at = FOLD_TABLE + (<usize>i << 4)
    const low = readNumber()
    const count = readNumber()
    const stride = readNumber() + 1
    const zigzag = readNumber()
    store<u32>(at, low)
    store<u32>(at, low + count * stride, 4)
    store<u32>(at, stride, 8)
    store<i32>(at, <i32>(zigzag >> 1) ^ -<i32>(zigzag & 1), 12)
  }
}

/** Address of the first folding run that ends at `point` or later; runs end at `foldEnd()`. */
export function firstFold(point: u32): usize {
  if (!isUnpacked) unpack()
  let low: u32 = 0
  let high = FOLD_COUNT
  while (low < high) {
    const middle = (low + high) >> 1
    if (load<u32>(FOLD_TABLE + (<usize>middle << 4), 4) < point) low = middle + 1
    else high = middle
  }
  return FOLD_TABLE + (<usize>low << 4)
}

export function foldEnd(): usize {
  return FOLD_TABLE + (<usize>FOLD_COUNT << 4)
}
