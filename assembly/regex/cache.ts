// DFA caches. A state is the ordered kernel of stepThreads and the facts about the byte before it. A cache
// stores, for one regex in one mode, the next state for each state and class of byte.
//
//   +0  owner (regex)  +4  mode   +8  program   +12 row bytes  +16 end of rows  +20 start of kernels
//   +24 states         +28 last use             +32 bytes read since it was emptied
//   +64 start states by the facts about the byte before (8 x u32, 0: not made)
//   +96 hash of kernels: 1024 x u32, state or 0
//   +4192 rows, upwards:  kernel address | count << 3 | before || transition for each class
//   ... kernels, downwards from the end
//
// A state is identified by its row's offset in the cache (a multiple of 8, never 0); a transition is that
// offset and three bits. Only `growCaches`, which the compiler calls, allocates memory.
import { blockAlloc, isMemorySealed } from '../arena'
import { CACHE_BYTES, MAX_CACHES } from './codes'
import { P_ANCHORED, P_CLASSES, P_SEARCH } from './program'
import { factsKept, kernel, kernelBefore, kernelCount, seedKernel, stepThreads } from './step'

/** Modes: search for the leftmost match; the same backwards from a match's end; match of the whole text. */
export const MODE_SEARCH: u32 = 0
export const MODE_REVERSE: u32 = 1
export const MODE_FULL: u32 = 2

/** Transition bits. A match ends before the byte that is consumed. */
export const T_MATCH: u32 = 1
/** Not computed yet: the whole entry has this value. */
export const T_UNKNOWN: u32 = 2
/** In an entry with a next state: only the thread of the search is left, no match has begun. */
export const T_IDLE: u32 = 2
/** No thread survives the byte. */
export const T_DEAD: u32 = 4
export const T_BITS: u32 = 7
/** There is no room for the next state. */
export const T_FULL: u32 = 0xffffffff

const C_OWNER: usize = 0
const C_MODE: usize = 4
const C_PROGRAM: usize = 8
const C_ROW: usize = 12
const C_ROWS_END: usize = 16
const C_KERNELS: usize = 20
const C_STATES: usize = 24
const C_USED: usize = 28
export const C_PROGRESS: usize = 32
const C_STARTS: usize = 64
const C_HASH: usize = 96
const HASH_SLOTS: u32 = 1024
const C_ROWS: u32 = 4192
/** Keeps probes of the hash table short. */
const MAX_STATES: u32 = 800
/** Size of a row's head, before the transitions. */
export const ROW_HEAD: usize = 8

/** Number of bytes for which a regex is simulated before it may take a cache from another. */
const PATIENCE: u32 = 4096
/** If a cache was used for fewer bytes per state than this, it is not refilled. */
const WORTH: u32 = 10

/** Offsets in a regex record; see index.ts. */
export const R_CACHES: usize = 8
export const R_SIMULATED: usize = 24

const CACHES = memory.data(4 * 16)
let cacheCount: i32 = 0
let clock: u32 = 0

/** Makes caches for `wanted` automata, in a sealed memory at most an eighth of it. Having no cache is not an error. */
export function growCaches(wanted: i32): void {
  const share = isMemorySealed() ? (<u32>memory.size() << 13) / CACHE_BYTES : MAX_CACHES
  const limit = min(min(wanted, MAX_CACHES), <i32>share)
  while (cacheCount < limit) {
    const cache = blockAlloc(CACHE_BYTES)
    if (cache == 0) return
    store<u32>(cache, 0, C_OWNER)
    store<u32>(cache, 0, C_USED)
    store<u32>(CACHES + (<usize>(cacheCount++) << 2), <u32>cache)
  }
}

function emptyCache(cache: usize): void {
  memory.fill(cache + C_STARTS, 0, <usize>C_ROWS - C_STARTS)
  store<u32>(cache, C_ROWS, C_ROWS_END)
  store<u32>(cache, CACHE_BYTES, C_KERNELS)
  store<u32>(cache, 0, C_STATES)
  store<u32>(cache, 0, C_PROGRESS)
}

/** Returns a free cache, or the one that was not used for the longest time. */
function oldestCache(): usize {
  let oldest: usize = 0
  for (let i = 0; i < cacheCount; i++) {
    const cache = <usize>load<u32>(CACHES + (<usize>i << 2))
    if (load<u32>(cache, C_OWNER) == 0) return cache
    if (oldest == 0 || load<u32>(cache, C_USED) - clock < load<u32>(oldest, C_USED) - clock) oldest = cache
  }
  return oldest
}

/** Returns the cache of a regex in a mode; 0 if the regex must be simulated this time. */
export function cacheFor(regex: usize, program: usize, mode: u32, bytes: i32): usize {
  const own = <usize>load<u32>(regex + (<usize>mode << 2), R_CACHES)
  if (own != 0) {
    store<u32>(own, ++clock, C_USED)
    return own
  }
  const cache = oldestCache()
  if (cache == 0) return 0
  const owner = <usize>load<u32>(cache, C_OWNER)
  if (owner != 0) {
    const simulated = load<u32>(regex, R_SIMULATED) + <u32>bytes
    store<u32>(regex, simulated, R_SIMULATED)
    if (simulated < PATIENCE) return 0
    store<u32>(owner + (<usize>load<u32>(cache, C_MODE) << 2), 0, R_CACHES)
  }
  store<u32>(regex, 0, R_SIMULATED)
  store<u32>(regex + (<usize>mode << 2), <u32>cache, R_CACHES)
  store<u32>(cache, <u32>regex, C_OWNER)
  store<u32>(cache, mode, C_MODE)
  store<u32>(cache, <u32>program, C_PROGRAM)
  store<u32>(cache, ++clock, C_USED)
  // Room for the head and one transition for each class and for the edge, in units of 8 bytes.
  store<u32>(cache, (<u32>ROW_HEAD + (load<u32>(program, P_CLASSES) + 1) * 4 + 7) & ~7, C_ROW)
  emptyCache(cache)
  return cache
}

/** Releases the caches of a regex, before it is freed. */
export function releaseCaches(regex: usize): void {
  for (let mode: usize = 0; mode < 3; mode++) {
    const cache = <usize>load<u32>(regex + (mode << 2), R_CACHES)
    if (cache != 0) store<u32>(cache, 0, C_OWNER)
  }
}

// --- states ----------------------------------------------------------------------------------

/** Returns the state of `count` threads; 0 if the cache is full. */
function stateOf(cache: usize, threads: usize, count: u32, before: u32): u32 {
  const meta = (count << 3) | before
  let hash: u32 = meta * 0x9e3779b1
  for (let i: u32 = 0; i < count; i++) hash = (rotl(hash, 5) ^ load<u32>(threads + (<usize>i << 2))) * 0x9e3779b1
  let slot = hash >> 22
  for (;;) {
    const known = load<u32>(cache + C_HASH + (<usize>slot << 2))
    if (known == 0) break
    const row = cache + known
    if (load<u32>(row, 4) == meta && memory.compare(load<u32>(row), threads, <usize>count << 2) == 0) return known
    slot = (slot + 1) & (HASH_SLOTS - 1)
  }
  const state = load<u32>(cache, C_ROWS_END)
  const rowBytes = load<u32>(cache, C_ROW)
  const kernels = load<u32>(cache, C_KERNELS)
  if (state + rowBytes + (count << 2) > kernels || load<u32>(cache, C_STATES) >= MAX_STATES) return 0
  const copy = cache + kernels - (<usize>count << 2)
  memory.copy(copy, threads, <usize>count << 2)
  const row = cache + state
  store<u32>(row, <u32>copy)
  store<u32>(row, meta, 4)
  for (let i = ROW_HEAD; i < rowBytes; i += 4) store<u32>(row + i, T_UNKNOWN)
  store<u32>(cache, state + rowBytes, C_ROWS_END)
  store<u32>(cache, kernels - (count << 2), C_KERNELS)
  store<u32>(cache, load<u32>(cache, C_STATES) + 1, C_STATES)
  store<u32>(cache + C_HASH + (<usize>slot << 2), state)
  return state
}

/** Returns the start state of a run; 0 if even this state does not fit into the cache. */
export function startState(cache: usize, before: u32): u32 {
  const place = cache + C_STARTS + (<usize>before << 2)
  const known = load<u32>(place)
  if (known != 0) return known
  seedKernel(startThread(load<u32>(cache, C_PROGRAM), load<u32>(cache, C_MODE)))
  let state = stateOf(cache, kernelBefore, 1, before)
  if (state == 0) {
    emptyCache(cache)
    state = stateOf(cache, kernelBefore, 1, before)
  }
  store<u32>(place, state)
  return state
}

/** Returns the instruction at which a run in this mode begins. */
export function startThread(program: usize, mode: u32): u32 {
  return mode == MODE_SEARCH ? load<u32>(program, P_SEARCH) : load<u32>(program, P_ANCHORED)
}

/** Computes and stores the transition of `state` on class `c`, or returns T_FULL. */
export function transition(cache: usize, state: u32, c: u32): u32 {
  const row = cache + state
  const meta = load<u32>(row, 4)
  const program = <usize>load<u32>(cache, C_PROGRAM)
  const isCut = load<u32>(cache, C_MODE) == MODE_SEARCH
  const isMatch = stepThreads(program, load<u32>(row), meta >> 3, meta & 7, c, isCut)
  let entry: u32 = T_DEAD
  if (kernelCount > 0) {
    entry = stateOf(cache, kernel, kernelCount, factsKept(program, c))
    if (entry == 0) return T_FULL
    if (kernelCount == 1 && isCut && load<u32>(kernel) == load<u32>(program, P_SEARCH)) entry |= T_IDLE
  }
  if (isMatch) entry |= T_MATCH
  store<u32>(row + ROW_HEAD + (<usize>c << 2), entry)
  return entry
}

/** Returns the state of the threads at `threads`, after emptying a full cache; 0 if it does not fit. */
export function enterState(cache: usize, threads: usize, meta: u32): u32 {
  const state = stateOf(cache, threads, meta >> 3, meta & 7)
  if (state != 0) return state
  emptyCache(cache)
  return stateOf(cache, threads, meta >> 3, meta & 7)
}

/** Copies the threads of `state` to `kernelBefore`. Returns their count << 3 | the facts about the byte before. */
export function threadsOf(cache: usize, state: u32): u32 {
  const meta = load<u32>(cache + state, 4)
  memory.copy(kernelBefore, load<u32>(cache + state), <usize>(meta >> 3) << 2)
  return meta
}

/** After a refresh: count << 3 | the facts about the byte before, for the threads in `kernelBefore`. */
export let refreshedMeta: u32 = 0

/**
 * After T_FULL: empties the cache and adds `state` again. Returns 0 if the rest of this run should be
 * simulated, because almost every byte needs a new state.
 */
export function refresh(cache: usize, state: u32, bytesRead: i32): u32 {
  const progress = load<u32>(cache, C_PROGRESS) + <u32>bytesRead
  const isWorth = progress / WORTH >= load<u32>(cache, C_STATES)
  refreshedMeta = threadsOf(cache, state)
  emptyCache(cache)
  return isWorth ? stateOf(cache, kernelBefore, refreshedMeta >> 3, refreshedMeta & 7) : 0
}

/** Counts bytes read without a refill, for the decision of `refresh`. */
export function addProgress(cache: usize, bytes: i32): void {
  store<u32>(cache, min(load<u32>(cache, C_PROGRESS) + <u32>bytes, 0x7fffffff), C_PROGRESS)
}
