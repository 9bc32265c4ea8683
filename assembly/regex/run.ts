// Runs an automaton over text, forwards and backwards: with the DFA if the regex has a cache, otherwise by
// simulation. Simulation is also used if the cache would be refilled too often. Both give the same results.
import { addProgress, cacheFor, MODE_FULL, MODE_REVERSE, MODE_SEARCH, refresh, refreshedMeta, ROW_HEAD, startState, startThread, T_BITS, T_DEAD, T_FULL, T_IDLE, T_MATCH, T_UNKNOWN, threadsOf, transition } from './cache'
import { nextFirst } from './prefilter'
import { P_CLASS_OF, P_CLASSES } from './program'
import { addWork, BEFORE_NOTHING, factsKept, kernelBefore, kernelCount, seedKernel, stepThreads, swapKernels } from './step'

/** No match. */
export const NONE: i32 = -1

/** Offsets in a regex record; see index.ts. */
export const R_FORWARD: usize = 0
export const R_REVERSE: usize = 4
export const R_HAS_FILTER: usize = 36
export const R_FILTER: usize = 48

// @ts-ignore: decorator
@inline
export function classAt(program: usize, text: usize, offset: i32): u32 {
  return <u32>load<u8>(program + load<u8>(text + offset), P_CLASS_OF)
}

/** Returns the tables of the bytes with which a match can begin, or 0. */
export function filterOf(regex: usize): usize {
  return load<u32>(regex, R_HAS_FILTER) != 0 ? regex + R_FILTER : 0
}

/** Simulates from `offset` on with the threads in `kernelBefore`. Returns the run's last match, or `found`. */
function simulateForward(program: usize, text: usize, length: i32, offset: i32, meta: u32, mode: u32, isFirst: bool, found: i32): i32 {
  const edge = load<u32>(program, P_CLASSES)
  let count = meta >> 3
  let before = meta & 7
  let last = found
  let i = offset
  while (true) {
    const c = i < length ? classAt(program, text, i) : edge
    if (stepThreads(program, kernelBefore, count, before, c, mode == MODE_SEARCH)) {
      last = i
      if (isFirst) return i
    }
    if (kernelCount == 0) return last
    swapKernels()
    count = kernelCount
    before = factsKept(program, c)
    i++
  }
}

function simulateBackward(program: usize, text: usize, low: i32, offset: i32, meta: u32, found: i32): i32 {
  const edge = load<u32>(program, P_CLASSES)
  let count = meta >> 3
  let before = meta & 7
  let last = found
  let i = offset
  while (true) {
    const c = i > 0 ? classAt(program, text, i - 1) : edge
    if (stepThreads(program, kernelBefore, count, before, c, false)) last = i
// The byte before `low` was read only for assertions.
    if (kernelCount == 0 || i <= low) return last
    swapKernels()
    count = kernelCount
    before = factsKept(program, c)
    i--
  }
}

/**
 * Returns the end of the preferred match that begins leftmost at `from` or later, or NONE. With `isFirst`: the
 * first position at which any match is known to end. MODE_FULL: the last position at which a match that
 * begins at `from` ends (the text's end only if the whole text matches).
 */
export function runForward(regex: usize, mode: u32, text: usize, length: i32, from: i32, isFirst: bool): i32 {
  const program = <usize>load<u32>(regex, R_FORWARD)
  const filter = mode == MODE_SEARCH ? filterOf(regex) : 0
  const begin = filter == 0 ? from : nextFirst(filter, text, from, length)
  if (filter != 0 && begin == length) {
    addWork(begin - from)
    return NONE
  }
  const before = begin > 0 ? factsKept(program, classAt(program, text, begin - 1)) : BEFORE_NOTHING
  const cache = cacheFor(regex, program, mode, length - from)
  let state = cache == 0 ? 0 : startState(cache, before)
  if (state == 0) {
    seedKernel(startThread(program, mode))
    return simulateForward(program, text, length, begin, 8 | before, mode, isFirst, NONE)
  }
  const rows = cache + ROW_HEAD
  const edge = load<u32>(program, P_CLASSES)
  let last = NONE
  let read = begin
  let i = begin
  while (true) {
    const c = i < length ? classAt(program, text, i) : edge
    let entry = load<u32>(rows + state + (<usize>c << 2))
    if (entry & T_BITS) {
      if (entry == T_UNKNOWN) {
        entry = transition(cache, state, c)
        if (entry == T_FULL) {
          state = refresh(cache, state, i - read)
          addWork(i - read)
          read = i
          if (state != 0) entry = transition(cache, state, c)
          if (state == 0 || entry == T_FULL) {
            const meta = state == 0 ? refreshedMeta : threadsOf(cache, state)
            return simulateForward(program, text, length, i, meta, mode, isFirst, last)
          }
        }
      }
      if (entry & T_MATCH) last = i
      if (entry & T_DEAD || (isFirst && last >= 0)) {
        addWork(i - read)
        addProgress(cache, i - read)
        return last
      }
      if (entry & T_IDLE && filter != 0) {
        // No match is in progress: skip to the next byte that can begin one.
        i = nextFirst(filter, text, i + 1, length)
        state = startState(cache, factsKept(program, classAt(program, text, i - 1)))
        continue
      }
    }
    state = entry & ~T_BITS
    i++
  }
}

/** Returns the leftmost position from `low` on at which a match that ends at `end` begins. */
export function runBackward(regex: usize, text: usize, length: i32, end: i32, low: i32): i32 {
  const program = <usize>load<u32>(regex, R_REVERSE)
  const before = end < length ? factsKept(program, classAt(program, text, end)) : BEFORE_NOTHING
  const cache = cacheFor(regex, program, MODE_REVERSE, end - low)
  let state = cache == 0 ? 0 : startState(cache, before)
  if (state == 0) {
    seedKernel(startThread(program, MODE_REVERSE))
    return simulateBackward(program, text, low, end, 8 | before, NONE)
  }
  const rows = cache + ROW_HEAD
  const edge = load<u32>(program, P_CLASSES)
  let last = NONE
  let read = end
  let i = end
  while (true) {
    const c = i > 0 ? classAt(program, text, i - 1) : edge
    let entry = load<u32>(rows + state + (<usize>c << 2))
    if (entry & T_BITS) {
      if (entry == T_UNKNOWN) {
        entry = transition(cache, state, c)
        if (entry == T_FULL) {
          state = refresh(cache, state, read - i)
          addWork(read - i)
          read = i
          if (state != 0) entry = transition(cache, state, c)
          if (state == 0 || entry == T_FULL) {
            const meta = state == 0 ? refreshedMeta : threadsOf(cache, state)
            return simulateBackward(program, text, low, i, meta, last)
          }
        }
      }
      if (entry & T_MATCH) last = i
    }
    if (entry & T_DEAD || i <= low) {
      addWork(read - i)
      addProgress(cache, read - i)
      return last
    }
    state = entry & ~T_BITS
    i--
  }
}

/** Returns true if the pattern matches the whole text. */
export function matchesWhole(regex: usize, text: usize, length: i32): bool {
  return runForward(regex, MODE_FULL, text, length, 0, false) == length
}
