// The rate part of the ABI, the same in core.wasm and core-rate-shared.wasm. Every span is checked here.
import { ERROR_ARGUMENT, RATE_BUSY, RATE_FULL, RATE_GONE, RATE_SIZE } from '../abi'
import { fail } from '../refusal'
import {
  charged,
  clock,
  excess,
  GONE,
  increment,
  loadInstant,
  prepare,
  refunded,
  report,
  storeInstant,
  swapInstant,
  ticksOf,
} from './gcra'
import {
  aim,
  beginMove,
  candidates,
  cellAt,
  claimCell,
  countGroup,
  endMove,
  findCell,
  formatTable,
  forwardOf,
  freeLocks,
  groupAt,
  groupCount,
  HEADER,
  isAimed,
  isInside,
  isMoved,
  keyLimit,
  lockGroup,
  moveGroup,
  reapGroup,
  setOwner,
  tableError,
  tableSize,
  unlockGroup,
} from './table'

const TAKE: i32 = 0
const CHARGE: i32 = 1
const PEEK: i32 = 2

/** Does the demand on a cell, as long as it is the one aimed at: 1, 0, or RATE_GONE. */
// @ts-ignore: decorator
@inline
function settle(cell: usize, mode: i32, out: usize): i32 {
  while (true) {
    const instant = loadInstant(cell)
    if (instant == GONE || !isAimed(cell)) return RATE_GONE
    const result = attempt(cell, instant, mode, out)
    if (result >= 0) return result
  }
}

/** One attempt on a cell that held `instant`: 1, 0, or -1 when it has changed meanwhile. */
// @ts-ignore: decorator
@inline
function attempt(cell: usize, instant: i64, mode: i32, out: usize): i32 {
  const over = excess(instant)
  if (mode != CHARGE && over > 0) {
    if (out != 0) report(out, instant, over)
    return 0
  }
  if (mode == PEEK || increment == 0) {
    if (out != 0) report(out, instant, 0)
    return 1
  }
  const next = increment < 0 ? refunded(instant) : charged(instant)
  if (next != instant && swapInstant(cell, instant, next) != instant) return -1
  if (out != 0) report(out, next, 0)
  return 1
}

/** The bucket does not exist, so it counts as full. Writes only the report. */
function settleFull(mode: i32, out: usize): i32 {
  const over = mode == CHARGE ? 0 : excess(clock)
  if (out != 0) report(out, clock, over)
  return over > 0 ? 0 : 1
}

/** Settles in the first cell that turns out to be the identity's. */
function settleIn(table: usize, group: usize, mode: i32, out: usize): i32 {
  let bits = candidates(group)
  while (bits != 0) {
    const result = settle(cellAt(table, group, ctz(bits)), mode, out)
    if (result >= 0) return result
    bits &= bits - 1
  }
  return RATE_GONE
}

/** The table in which to look for the bucket after `follow` and `advance`. */
let next: usize = 0

/** Follows completed moves from a table to the one that is in use: 0, or a code. */
// @ts-ignore: decorator
@inline
function follow(table: usize): i32 {
  next = table
  while (isMoved(next)) {
    next = forwardOf(next)
    const error = tableError(next)
    if (error < 0) return error
  }
  return 0
}

/** Makes the bucket, or moves its group to the new table: 0, or a code. */
function advance(table: usize, group: usize): i32 {
  if (!lockGroup(group)) return fail(RATE_BUSY)
  next = forwardOf(table)
  let code: i32
  if (next == 0) {
    code = claimCell(table, group, clock) == 0 ? RATE_FULL : 0
    next = table
  } else {
    code = tableError(next)
    if (code == 0) code = moveGroup(table, group, clock)
  }
  unlockGroup(group)
  return code < 0 ? fail(code) : 0
}

/** Finds or makes the bucket, in this table or in the one that replaces it, and settles. */
function demand(start: usize, id: i32, key: usize, length: i32, mode: i32, out: usize): i32 {
  // A demand that leaves a full bucket as it is makes no bucket.
  const isTrace = mode == PEEK || increment <= 0 || (mode == TAKE && excess(clock) > 0)
  let table = start
  while (true) {
    const error = follow(table)
    if (error < 0) return fail(error)
    table = next
    const group = aim(table, id, key, length)
    const found = settleIn(table, group, mode, out)
    if (found >= 0) return found
    if (isTrace && forwardOf(table) == 0) return settleFull(mode, out)
    const code = advance(table, group)
    if (code < 0) return code
    table = next
  }
}

/** 0, or a code: is the key, which must fit the table, inside memory, and the record too? */
function spanError(table: usize, key: usize, length: i32, out: usize): i32 {
  const error = tableError(table)
  if (error < 0) return error
  if (length < 0 || length > keyLimit(table)) return ERROR_ARGUMENT
  const isSound = isInside(key, <usize>length) && (out == 0 || isInside(out, RATE_SIZE))
  return isSound ? 0 : ERROR_ARGUMENT
}

/** Bytes that a table of `groups` (a power of two up to 65536; 32 buckets each) with keys of up to
 * `key_bytes` (up to 1024) takes; ERROR_ARGUMENT when there can be none. */
export function rate_size(groups: i32, key_bytes: i32): i32 {
  const size = <i32>tableSize(groups, key_bytes)
  return size == 0 ? fail(ERROR_ARGUMENT) : size
}

/** Makes an empty table in rate_size bytes at a 16-aligned address; `secret` is 16 random bytes, copied. */
export function rate_format(table: usize, groups: i32, key_bytes: i32, secret: usize): i32 {
  return formatTable(table, groups, key_bytes, secret) ? 0 : fail(ERROR_ARGUMENT)
}

/** Names who holds the locks that this instance takes: a number > 0 of its own for each thread. */
export function rate_owner(number: i32): i32 {
  if (number < 1) return fail(ERROR_ARGUMENT)
  setOwner(<u32>number)
  return 0
}

/** Unlocks the groups that a dead owner left locked, and counts them. Its thread must have ended. */
export function rate_release(table: usize, dead: i32): i32 {
  const error = dead > 0 ? tableError(table) : ERROR_ARGUMENT
  return error < 0 ? fail(error) : freeLocks(table, <u32>dead)
}

/**
 * Takes `amount` units from the bucket of (id, key) if it has them: 1 taken, 0 refused, or a code.
 * `period` is ms for one unit, `capacity` the units of a full bucket, `now` ms of a clock that all
 * callers share. A bucket begins full. `out` takes a RATE_* record; 0 for none.
 */
export function rate_take(
  table: usize,
  id: i32,
  key: usize,
  length: i32,
  period: f64,
  capacity: f64,
  amount: f64,
  now: f64,
  out: usize,
): i32 {
  const isGood = amount >= 0 && prepare(period, capacity, amount, now)
  const error = isGood ? spanError(table, key, length, out) : ERROR_ARGUMENT
  return error < 0 ? fail(error) : demand(table, id, key, length, TAKE, out)
}

/** As rate_take, but takes nothing: 1 when it would be admitted. */
export function rate_peek(
  table: usize,
  id: i32,
  key: usize,
  length: i32,
  period: f64,
  capacity: f64,
  amount: f64,
  now: f64,
  out: usize,
): i32 {
  const isGood = amount >= 0 && prepare(period, capacity, amount, now)
  const error = isGood ? spanError(table, key, length, out) : ERROR_ARGUMENT
  return error < 0 ? fail(error) : demand(table, id, key, length, PEEK, out)
}

/** Takes `amount` units, as debt if the bucket is empty; a negative amount gives units back: 1. */
export function rate_charge(
  table: usize,
  id: i32,
  key: usize,
  length: i32,
  period: f64,
  capacity: f64,
  amount: f64,
  now: f64,
  out: usize,
): i32 {
  const isGood = prepare(period, capacity, amount, now)
  const error = isGood ? spanError(table, key, length, out) : ERROR_ARGUMENT
  return error < 0 ? fail(error) : demand(table, id, key, length, CHARGE, out)
}

/**
 * The address of the bucket of (id, no key) for rate_take_at, created if it does not exist; or a code, which
 * is above -4096 as an i32 and never an address.
 */
export function rate_cell(table: usize, id: i32, now: f64): i32 {
  let error = prepare(1, 1, 1, now) ? tableError(table) : ERROR_ARGUMENT
  let at = table
  while (true) {
    if (error == 0) error = follow(at)
    if (error < 0) return fail(error)
    at = next
    const group = aim(at, id, 0, 0)
    const cell = findCell(at, group)
    if (cell != 0 && forwardOf(at) == 0) return <i32>cell
    const code = advance(at, group)
    if (code < 0) return code
    at = next
  }
}

/**
 * As rate_take, on a cell of rate_cell: nothing is looked up. RATE_GONE: the bucket was idle and
 * forgotten, or has moved; ask rate_cell again, or rate_take. The cell's table must still be there.
 */
export function rate_take_at(
  cell: usize,
  id: i32,
  period: f64,
  capacity: f64,
  amount: f64,
  now: f64,
  out: usize,
): i32 {
  const isGood = amount >= 0 && prepare(period, capacity, amount, now)
  if (!isGood || !isInside(cell, 16) || (cell & 7) != 0) return fail(ERROR_ARGUMENT)
  if (out != 0 && !isInside(out, RATE_SIZE)) return fail(ERROR_ARGUMENT)
  while (true) {
    const instant = loadInstant(cell)
    if (instant == GONE || load<i32>(cell, 8) != id || load<i32>(cell, 12) != 0) return RATE_GONE
    const result = attempt(cell, instant, TAKE, out)
    if (result >= 0) return result
  }
}

/** Forgets buckets that are full: how many, or a code. Not needed: their cells are reused anyway. */
export function rate_reap(table: usize, now: f64): i32 {
  const ticks = ticksOf(now)
  const error = ticks == 0 ? ERROR_ARGUMENT : tableError(table)
  if (error < 0) return fail(error)
  let count = 0
  for (let index = 0; index < groupCount(table); index++) {
    const group = groupAt(table, index)
    if (!lockGroup(group)) return fail(RATE_BUSY)
    count += reapGroup(table, group, ticks)
    unlockGroup(group)
  }
  return count
}

/** How many buckets the table holds. */
export function rate_count(table: usize): i32 {
  const error = tableError(table)
  if (error < 0) return fail(error)
  let count = 0
  for (let index = 0; index < groupCount(table); index++) {
    count += countGroup(table, groupAt(table, index))
  }
  return count
}

/**
 * The limit of an id has changed: what its buckets have used stays the same number of units.
 * `ratio` is the new period by the old one. How many buckets, or a code.
 */
export function rate_rescale(table: usize, id: i32, ratio: f64, now: f64): i32 {
  const ticks = ticksOf(now)
  const isRatio = ratio > 0 && ratio < Infinity
  const error = ticks == 0 || !isRatio ? ERROR_ARGUMENT : tableError(table)
  if (error < 0) return fail(error)
  let count = 0
  for (let index = 0; index < groupCount(table); index++) {
    const group = groupAt(table, index)
    if (!lockGroup(group)) return fail(RATE_BUSY)
    for (let each = 0; each < 32; each++) {
      const cell = cellAt(table, group, each)
      if (load<i32>(cell, 8) == id && rescale(cell, ratio, ticks)) count++
    }
    unlockGroup(group)
  }
  return count
}

function rescale(cell: usize, ratio: f64, now: i64): bool {
  while (true) {
    const instant = loadInstant(cell)
    if (instant == GONE) return false
    if (instant <= now) return true
    const used = ceil(<f64>(instant - now) * ratio)
    const fresh = now + <i64>min(used, <f64>((<i64>1) << 61))
    if (swapInstant(cell, instant, fresh) == instant) return true
  }
}

/**
 * Moves all buckets to another table, while other threads use them. Returns their number, or RATE_BUSY,
 * after which it may be called again. The new table must have the same secret, at least as many groups,
 * and keys at least as long. Calls on the old table are forwarded to the new one, so its memory must stay
 * until no caller uses it any more. Do not move a table before the move to it has completed.
 */
export function rate_move(from: usize, to: usize, now: f64): i32 {
  const ticks = ticksOf(now)
  let error = ticks == 0 ? ERROR_ARGUMENT : tableError(from)
  if (error == 0) error = tableError(to)
  if (error < 0) return fail(error)
  const begun = beginMove(from, to)
  if (begun < 0) return fail(begun)
  let count = 0
  for (let index = 0; index < groupCount(from); index++) {
    const group = groupAt(from, index)
    if (!lockGroup(group)) return fail(RATE_BUSY)
    const moved = moveGroup(from, group, ticks)
    unlockGroup(group)
    if (moved < 0) return fail(moved)
    count += moved
  }
  endMove(from)
  return count
}
