// A search that can stop at the end of the available text and continue when more has arrived: like runForward, but
// its threads are kept between calls, and it tracks the position from which on a match may have begun.
import { cacheFor, enterState, MODE_SEARCH, refresh, refreshedMeta, ROW_HEAD, startState, startThread, T_BITS, T_DEAD, T_FULL, T_IDLE, T_MATCH, T_UNKNOWN, threadsOf, transition } from './cache'
import { P_CLASSES, P_SEARCH } from './program'
import { nextFirst } from './prefilter'
import { classAt, filterOf, R_FORWARD } from './run'
import { addWork, BEFORE_NOTHING, factsKept, kernelBefore, kernelCount, stepThreads, swapKernels } from './step'

// --- input and output of a scan ----------------------------------------------------------------
/** Position up to which the text was read. */
export let scanPosition: i32 = 0
/** End of the best match so far, or -1. */
export let scanLast: i32 = -1
/** No undecided match begins before this position. */
export let scanIdle: i32 = 0
/** count << 3 | the facts about the byte before, for the kept threads; 0 if the match is decided. */
export let scanMeta: u32 = 0

/** Starts a scan: sets the facts about the byte before `from`, and the search's only thread at `threads`. */
export function beginScan(regex: usize, text: usize, from: i32, threads: usize): u32 {
  const program = <usize>load<u32>(regex, R_FORWARD)
  store<u32>(threads, startThread(program, MODE_SEARCH))
  return 8 | (from > 0 ? factsKept(program, classAt(program, text, from - 1)) : BEFORE_NOTHING)
}

/**
 * Continues with the threads at `threads` (`meta`) from `position` to the end of the text at `length`, which is
 * the end of all text if `isEnd`. Afterwards scanMeta is 0 if the match scanLast (-1: none) is decided.
 * Otherwise the threads are at `threads` again, for the next call.
 */
export function scan(regex: usize, text: usize, length: i32, isEnd: bool, threads: usize, meta: u32, position: i32, last: i32, idle: i32): void {
  const program = <usize>load<u32>(regex, R_FORWARD)
  scanLast = last
  scanIdle = idle
  scanPosition = position
  const cache = cacheFor(regex, program, MODE_SEARCH, length - position)
  const state = cache == 0 ? 0 : enterState(cache, threads, meta)
  if (state != 0) {
    scanByStates(cache, program, filterOf(regex), text, length, isEnd, threads, state)
    return
  }
  memory.copy(kernelBefore, threads, <usize>(meta >> 3) << 2)
  simulate(program, text, length, isEnd, threads, meta)
}

function scanByStates(cache: usize, program: usize, filter: usize, text: usize, length: i32, isEnd: bool, threads: usize, first: u32): void {
  const rows = cache + ROW_HEAD
  const edge = load<u32>(program, P_CLASSES)
  let state = first
  let i = scanPosition
  let read = i
  while (i < length || isEnd) {
    const c = i < length ? classAt(program, text, i) : edge
    let entry = load<u32>(rows + state + (<usize>c << 2))
    if (entry & T_BITS) {
      if (entry == T_UNKNOWN) {
        entry = transition(cache, state, c)
        if (entry == T_FULL) {
          state = refresh(cache, state, i - read)
          read = i
          if (state != 0) entry = transition(cache, state, c)
          if (state == 0 || entry == T_FULL) {
            scanPosition = i
            simulate(program, text, length, isEnd, threads, state == 0 ? refreshedMeta : threadsOf(cache, state))
            return
          }
        }
      }
      if (entry & T_MATCH) scanLast = i
      if (entry & T_DEAD) {
        addWork(i - scanPosition)
        scanPosition = i
        scanMeta = 0
        return
      }
      if (entry & T_IDLE) {
        scanIdle = i + 1
        if (filter != 0 && i + 1 < length) {
          i = nextFirst(filter, text, i + 1, length)
          scanIdle = i
          state = startState(cache, factsKept(program, classAt(program, text, i - 1)))
          continue
        }
      }
    }
    state = entry & ~T_BITS
    i++
  }
  addWork(i - scanPosition)
  scanPosition = i
  scanMeta = threadsOf(cache, state)
  memory.copy(threads, kernelBefore, <usize>(scanMeta >> 3) << 2)
}

/** Like `scan`, by simulation, with the threads in `kernelBefore`. */
function simulate(program: usize, text: usize, length: i32, isEnd: bool, threads: usize, meta: u32): void {
  const edge = load<u32>(program, P_CLASSES)
  const search = load<u32>(program, P_SEARCH)
  let count = meta >> 3
  let before = meta & 7
  let i = scanPosition
  while (i < length || isEnd) {
    const c = i < length ? classAt(program, text, i) : edge
    if (stepThreads(program, kernelBefore, count, before, c, true)) scanLast = i
    if (kernelCount == 0) {
      scanPosition = i
      scanMeta = 0
      return
    }
    swapKernels()
    count = kernelCount
    before = factsKept(program, c)
    i++
    if (count == 1 && load<u32>(kernelBefore) == search) scanIdle = i
  }
  scanPosition = i
  scanMeta = (count << 3) | before
  memory.copy(threads, kernelBefore, <usize>count << 2)
}
