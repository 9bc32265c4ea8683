/**
 * A table of buckets by id and key, in memory that several instances may share.
 *
 *     table:  +0 mark  +4 groups  +8 cell size  +12 key bytes  +16 secret (16)  +32 forward
 *             +36 is moved  +64 groups ...
 *     group:  +0 lock (owner, or 0)  +16 tags: 32 u32  +144 cells: 32
 *     cell:   +0 instant (i64; GONE: free)  +8 id  +12 key length  +16 key
 *
 * *Finding* needs no lock: load the instant, compare id and key, then swap the instant. A cell that
 * changed hands in between has another instant: one is given up only when it lies a second in the
 * past, and begins at the present, so no two owners of a cell ever have an equal one.
 *
 * *Claiming, reaping and moving* hold the lock of the key's group, so a key never has two cells. A
 * caller that finds a lock held tries again a bounded number of times, then returns RATE_BUSY. The lock names its
 * owner, so that the host can free what a dead worker left locked; the cell that it was at is free.
 *
 * *Moving* to another table: first `forward` is set, then each group is emptied under its lock, by
 * the mover or by the first caller that needs a key of it. A caller claims a key in the new table only
 * after it has found the old group empty.
 */
import { ERROR_ARGUMENT, RATE_BUSY, RATE_FULL } from '../abi'
import { GONE, isIdle, loadInstant, storeInstant, swapInstant } from './gcra'
import { sipHash } from './sip-hash'

const MARK: u32 = 0x31544152
export const HEADER: usize = 64
const CELLS: i32 = 32
const GROUP_HEADER: usize = 144
const CELL_HEADER: usize = 16
const SPINS: i32 = 2000

/** Who holds the locks that this instance takes. */
export let owner: u32 = 1

export function setOwner(number: u32): void {
  owner = number
}

// @ts-ignore: decorator
@inline
function loadWord(at: usize): u32 {
  if (ASC_FEATURE_THREADS) return atomic.load<u32>(at)
  else return load<u32>(at)
}

// @ts-ignore: decorator
@inline
function storeWord(at: usize, word: u32): void {
  if (ASC_FEATURE_THREADS) atomic.store<u32>(at, word)
  else store<u32>(at, word)
}

/** Are `size` bytes at `start` inside memory? */
// @ts-ignore: decorator
@inline
export function isInside(start: usize, size: usize): bool {
  return <u64>start + <u64>size <= <u64>memory.size() << 16
}

/**
 * 0, or why a table cannot be used: ERROR_ARGUMENT, or RATE_BUSY in shared memory. A call sees the size
 * that shared memory had when the call began. If another thread has grown it since, the next call sees
 * the table.
 */
// @ts-ignore: decorator
@inline
export function tableError(table: usize): i32 {
  if (table == 0 || (table & 15) != 0) return ERROR_ARGUMENT
  if (!isInside(table, HEADER)) return ASC_FEATURE_THREADS ? RATE_BUSY : ERROR_ARGUMENT
  if (load<u32>(table) != MARK) return ERROR_ARGUMENT
  if (!ASC_FEATURE_THREADS) return 0
  const size = HEADER + <usize>groupCount(table) * groupSize(table)
  return isInside(table, size) ? 0 : RATE_BUSY
}

// @ts-ignore: decorator
@inline
function groupSize(table: usize): usize {
  return GROUP_HEADER + <usize>CELLS * <usize>load<u32>(table, 8)
}

export function groupCount(table: usize): i32 {
  return <i32>load<u32>(table, 4)
}

export function groupAt(table: usize, index: i32): usize {
  return table + HEADER + <usize>index * groupSize(table)
}

// @ts-ignore: decorator
@inline
export function cellAt(table: usize, group: usize, index: i32): usize {
  return group + GROUP_HEADER + <usize>index * <usize>load<u32>(table, 8)
}

export function keyLimit(table: usize): i32 {
  return <i32>load<u32>(table, 12)
}

/** Where keys of this table are kept from now on; 0 while that is here. */
// @ts-ignore: decorator
@inline
export function forwardOf(table: usize): usize {
  return <usize>loadWord(table + 32)
}

/** Is nothing left in this table? */
// @ts-ignore: decorator
@inline
export function isMoved(table: usize): bool {
  return loadWord(table + 36) != 0
}

/** Bytes of a table; 0 when there can be none. */
export function tableSize(groups: i32, keyBytes: i32): usize {
  if (groups < 1 || groups > 0x10000 || popcnt(groups) != 1) return 0
  if (keyBytes < 0 || keyBytes > 1024) return 0
  const cell = CELL_HEADER + (<usize>(keyBytes + 15) & ~15)
  const size = <u64>HEADER + <u64>groups * <u64>(GROUP_HEADER + <usize>CELLS * cell)
  return size < 0x40000000 ? <usize>size : 0
}

/** Writes only where there is no zero, since a page of new memory takes no space until it is written. */
function clear(address: usize, size: usize): void {
  for (let at = address, end = address + size; at < end; at += 8) {
    if (load<u64>(at) != 0) store<u64>(at, 0)
  }
}

/** Makes a table without buckets; the memory may hold anything. */
export function formatTable(table: usize, groups: i32, keyBytes: i32, secret: usize): bool {
  const size = tableSize(groups, keyBytes)
  if (size == 0 || table == 0 || (table & 15) != 0) return false
  if (!isInside(table, size) || !isInside(secret, 16)) return false
  const k0 = load<u64>(secret)
  const k1 = load<u64>(secret, 8)
  clear(table, size)
  store<u32>(table, <u32>groups, 4)
  store<u32>(table, <u32>(CELL_HEADER + (<usize>(keyBytes + 15) & ~15)), 8)
  store<u32>(table, <u32>keyBytes, 12)
  store<u64>(table, k0, 16)
  store<u64>(table, k1, 24)
  storeWord(table, MARK)
  return true
}

export function lockGroup(group: usize): bool {
  if (ASC_FEATURE_THREADS) {
    for (let spin = 0; spin < SPINS; spin++) {
      if (atomic.load<u32>(group) == 0 && atomic.cmpxchg<u32>(group, 0, owner) == 0) return true
    }
    return false
  } else {
    return true
  }
}

export function unlockGroup(group: usize): void {
  if (ASC_FEATURE_THREADS) atomic.store<u32>(group, 0)
}

/** Frees every lock of an owner that has died; how many there were. */
export function freeLocks(table: usize, dead: u32): i32 {
  let count = 0
  for (let index = 0; index < groupCount(table); index++) {
    const group = groupAt(table, index)
    if (loadWord(group) != dead) continue
    storeWord(group, 0)
    count++
  }
  return count
}

/** The identity that the current call is about. */
export let tag: u32 = 0
let identity: i32 = 0
let keyStart: usize = 0
let keyLength: i32 = 0

/** Takes id and key of a call; the group of the table that they belong to. */
export function aim(table: usize, id: i32, key: usize, length: i32): usize {
  const hash = sipHash(table + 16, id, key, length)
  tag = max(<u32>hash, 1)
  identity = id
  keyStart = key
  keyLength = length
  return groupAt(table, <i32>(hash >> 32) & (groupCount(table) - 1))
}

/** Does the cell hold the identity that was aimed at? Load its instant first. */
export function isAimed(cell: usize): bool {
  if (load<i32>(cell, 8) != identity || load<i32>(cell, 12) != keyLength) return false
  const own = cell + CELL_HEADER
  const whole = keyLength & ~7
  for (let i = 0; i < whole; i += 8) {
    if (load<u64>(own + i) != load<u64>(keyStart + i)) return false
  }
  for (let i = whole; i < keyLength; i++) {
    if (load<u8>(own + i) != load<u8>(keyStart + i)) return false
  }
  return true
}

/** One bit for each cell of the group whose tag is that of the identity. */
// @ts-ignore: decorator
@inline
export function candidates(group: usize): u32 {
  const wanted = i32x4.splat(<i32>tag)
  let bits: u32 = 0
  for (let i = 0; i < CELLS; i += 4) {
    const equal = i32x4.eq(v128.load(group + 16 + (<usize>i << 2)), wanted)
    bits |= <u32>i32x4.bitmask(equal) << i
  }
  return bits
}

/** The cell that holds the identity; 0 when none does. */
export function findCell(table: usize, group: usize): usize {
  let bits = candidates(group)
  while (bits != 0) {
    const cell = cellAt(table, group, ctz(bits))
    if (loadInstant(cell) != GONE && isAimed(cell)) return cell
    bits &= bits - 1
  }
  return 0
}

/**
 * The cell of the identity, created if it does not exist, full at `now`. Under the group's lock. 0 when
 * every cell of the group is in use.
 */
export function claimCell(table: usize, group: usize, now: i64): usize {
  const present = findCell(table, group)
  if (present != 0) return present
  for (let index = 0; index < CELLS; index++) {
    const cell = cellAt(table, group, index)
    if (!giveUp(cell, now)) continue
    store<i32>(cell, identity, 8)
    store<i32>(cell, keyLength, 12)
    memory.copy(cell + CELL_HEADER, keyStart, keyLength)
    storeWord(group + 16 + (<usize>index << 2), tag)
    storeInstant(cell, now)
    return cell
  }
  return 0
}

/** Makes an idle cell free; false when it is in use. Under the group's lock. */
export function giveUp(cell: usize, now: i64): bool {
  const instant = loadInstant(cell)
  if (instant == GONE) return true
  return isIdle(instant, now) && swapInstant(cell, instant, GONE) == instant
}

/** Frees the idle cells of a group; how many. Under its lock. */
export function reapGroup(table: usize, group: usize, now: i64): i32 {
  let count = 0
  for (let index = 0; index < CELLS; index++) {
    const cell = cellAt(table, group, index)
    if (loadInstant(cell) == GONE || !giveUp(cell, now)) continue
    storeWord(group + 16 + (<usize>index << 2), 0)
    count++
  }
  return count
}

/** How many cells of a group are taken. */
export function countGroup(table: usize, group: usize): i32 {
  let count = 0
  for (let index = 0; index < CELLS; index++) {
    if (loadInstant(cellAt(table, group, index)) != GONE) count++
  }
  return count
}

/**
 * Begins to move: 0, or ERROR_ARGUMENT when it moves elsewhere already, or to a table that is smaller or
 * has another secret: in one at least as large with the same secret every group takes the keys of one
 * old group at most, so there is always room.
 */
export function beginMove(from: usize, to: usize): i32 {
  const forward = forwardOf(from)
  if (forward == to) return 0
  if (forward != 0 || from == to || forwardOf(to) != 0) return ERROR_ARGUMENT
  if (keyLimit(to) < keyLimit(from) || groupCount(to) < groupCount(from)) return ERROR_ARGUMENT
  const isSame = load<u64>(from, 16) == load<u64>(to, 16) && load<u64>(from, 24) == load<u64>(to, 24)
  if (!isSame) return ERROR_ARGUMENT
  storeWord(from + 32, <u32>to)
  return 0
}

export function endMove(from: usize): void {
  storeWord(from + 36, 1)
}

/**
 * Empties a group into the table it moves to, under its lock: how many buckets went, or RATE_BUSY (or
 * RATE_FULL) with the rest still here. Aims at what it moves: aim again afterwards.
 */
export function moveGroup(from: usize, group: usize, now: i64): i32 {
  const to = forwardOf(from)
  let count = 0
  for (let index = 0; index < CELLS; index++) {
    const cell = cellAt(from, group, index)
    if (giveUp(cell, now)) continue
    const target = aim(to, load<i32>(cell, 8), cell + CELL_HEADER, load<i32>(cell, 12))
    if (!lockGroup(target)) return RATE_BUSY
    const fresh = claimCell(to, target, now)
    if (fresh != 0) {
      // Until this group is unlocked no other thread looks for the key in the new table.
      let instant = loadInstant(cell)
      while (true) {
        const seen = swapInstant(cell, instant, GONE)
        if (seen == instant) break
        instant = seen
      }
      storeInstant(fresh, instant)
    }
    unlockGroup(target)
    if (fresh == 0) return RATE_FULL
    count++
  }
  return count
}
