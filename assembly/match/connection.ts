/** The Connection fields of one head: options, and names to remove (RFC 9110 7.6.1). */
import {
  BAD_CONNECTION,
  FIELD_INFO,
  FIELD_NAME,
  FIELD_SIZE,
  FLAG_CLOSE,
  FLAG_KEEP_ALIVE,
  FLAG_TE_TRAILERS,
  HEAD_FIELDS,
  HEAD_FIELD_COUNT,
  HEAD_HOP_COUNT,
  INFO_HOP,
  NAME_CONNECTION,
  NAME_KEEP_ALIVE,
  NAME_TRAILER,
  NAME_UPGRADE,
  NOMINATION_LIMIT,
} from '../abi'
import { fold, skipBlank, skipToken, trimBlank } from '../bytes'
import { refuse } from '../refusal'
import { isClose, isNominable, isTrailers, knownName } from './names'

/** Connection lists upgrade. Not a FLAG of the ABI: it counts only together with an Upgrade field. */
export const ASKS_UPGRADE: i32 = 1 << 30

/** Spans (u32, u32) of the names that are nominated and not hop-by-hop by themselves. */
const NOMINATED: usize = memory.data(8 * NOMINATION_LIMIT)
let nominated: i32 = 0

export function forgetNominations(): void {
  nominated = 0
}

/** What one option of the list means: FLAG_*, ASKS_UPGRADE, 0, or a refusal. */
function readOption(start: usize, end: usize): i32 {
  const length = end - start
  if (isClose(start, length)) return FLAG_CLOSE
  const known = knownName(start, length)
  if (known == NAME_KEEP_ALIVE) return FLAG_KEEP_ALIVE
  if (known == NAME_UPGRADE) return ASKS_UPGRADE
  if (!isNominable(start, length)) return refuse(BAD_CONNECTION, start)
  // Hop-by-hop by themselves; Trailer is not (RFC 9110 6.6.2).
  if (known >= NAME_CONNECTION && known < NAME_UPGRADE && known != NAME_TRAILER) return 0
  if (nominated == NOMINATION_LIMIT) return refuse(BAD_CONNECTION, start)
  const slot = NOMINATED + (<usize>nominated << 3)
  store<u32>(slot, <u32>start)
  store<u32>(slot, <u32>end, 4)
  nominated++
  return 0
}

/** Reads one Connection value: the union of its options' flags, or a refusal. */
export function readConnection(start: usize, end: usize): i32 {
  let flags = 0
  let p = start
  while (p < end) {
    p = skipBlank(p, end)
    const stop = skipToken(p, end)
    const after = skipBlank(stop, end)
    if (after < end && load<u8>(after) != 0x2c) return refuse(BAD_CONNECTION, after)
    if (stop > p) {
      const option = readOption(p, stop)
      if (option < 0) return option
      flags |= option
    }
    p = after + 1
  }
  return flags
}

/** FLAG_TE_TRAILERS when a TE value lists `trailers`. */
export function readTe(start: usize, end: usize): i32 {
  let p = start
  while (p < end) {
    let stop = p
    while (stop < end && load<u8>(stop) != 0x2c) stop++
    const from = skipBlank(p, stop)
    if (isTrailers(from, trimBlank(from, stop) - from)) return FLAG_TE_TRAILERS
    p = stop + 1
  }
  return 0
}

function isSameName(a: usize, b: usize, length: usize): bool {
  for (let i: usize = 0; i < length; i++) {
    if (fold(load<u8>(a + i)) != fold(load<u8>(b + i))) return false
  }
  return true
}

/** Marks every field that was nominated as hop-by-hop. */
export function markNominated(record: usize): void {
  if (nominated == 0) return
  const count = load<i32>(record + HEAD_FIELD_COUNT)
  let hops = load<i32>(record + HEAD_HOP_COUNT)
  let field = record + HEAD_FIELDS
  for (let i = 0; i < count; i++, field += FIELD_SIZE) {
    const info = load<i32>(field + FIELD_INFO)
    if (info & INFO_HOP) continue
    const name = <usize>load<u32>(field + FIELD_NAME)
    const length = <usize>load<u32>(field + FIELD_NAME, 4) - name
    for (let k = 0; k < nominated; k++) {
      const slot = NOMINATED + (<usize>k << 3)
      const other = <usize>load<u32>(slot)
      if (<usize>load<u32>(slot, 4) - other != length || !isSameName(name, other, length)) continue
      store<i32>(field + FIELD_INFO, info | INFO_HOP)
      hops++
      break
    }
  }
  store<i32>(record + HEAD_HOP_COUNT, hops)
}
