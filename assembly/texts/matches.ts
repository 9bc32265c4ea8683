// Counts of the matches of guards. A guard has a list of pairs, in the order of the first matches: the rule, or -1
// for matches in texts that an answer repeats; and how many there are.
import { S_EDIT_COUNT, S_EDITS } from '../regex/stream'
import { Bytes, freeBytes, newBytes, push } from './bytes'
import { GUARD_LIMIT, guardRejects } from './chain'
import { rw } from './state'

const PAIR_BYTES: i32 = 8

let isCounting: bool = true

/** Matches in texts that an answer repeats are counted apart. */
export function countMatches(counts: bool): void {
  isCounting = counts
}

/** The pairs of a guard, or 0. */
export function matchesOf(lists: usize, guard: i32): Bytes {
  return changetype<Bytes>(<usize>load<u32>(lists + (<usize>guard << 2)))
}

/** Notes a match of a guard, which has been replaced. */
export function noteMatch(guard: i32, rule: i32): void {
  addMatch(guard, isCounting ? rule : -1)
  if (!isCounting || !guardRejects(rw.guards, guard)) return
  if (rw.rejected < 0 || guard < rw.rejected) rw.rejected = guard
}

function addMatch(guard: i32, rule: i32): void {
  let list = matchesOf(rw.counts, guard)
  if (changetype<usize>(list) == 0) {
    list = newBytes()
    store<u32>(rw.counts + (<usize>guard << 2), <u32>changetype<usize>(list))
  }
  for (let i = 0; i < list.used; i += PAIR_BYTES) {
    const pair = list.data + i
    if (load<i32>(pair) != rule) continue
    store<i32>(pair, load<i32>(pair, 4) + 1, 4)
    return
  }
  const pair = push(list, PAIR_BYTES)
  store<i32>(pair, rule)
  store<i32>(pair, 1, 4)
}

/** Notes the matches of the last push of a mask stream; how many. */
export function noteEdits(guard: i32, stream: usize): i32 {
  let made = 0
  for (let i = 0; i < load<i32>(stream, S_EDIT_COUNT); i++) {
    const edit = <usize>load<u32>(stream, S_EDITS) + <usize>(i * 12)
    const rule = load<i32>(edit, 8)
    if (rule < 0 || load<i32>(edit, 4) == 0) continue
    noteMatch(guard, rule)
    made++
  }
  return made
}

/** Matches of a guard in texts that are not repeated. */
export function matchCount(lists: usize, guard: i32): i32 {
  const list = matchesOf(lists, guard)
  if (changetype<usize>(list) == 0) return 0
  let count = 0
  for (let i = 0; i < list.used; i += PAIR_BYTES) {
    if (load<i32>(list.data + i) >= 0) count += load<i32>(list.data + i, 4)
  }
  return count
}

export function freeMatches(lists: usize): void {
  for (let guard = 0; guard < GUARD_LIMIT && lists != 0; guard++) {
    const list = matchesOf(lists, guard)
    if (changetype<usize>(list) != 0) freeBytes(list)
  }
}
