// Paths of requests to models: which format a path has. A client must not avoid guards by writing a path in
// another way, so paths are compared in a form that covers every way in which a provider may read them.
import { append, appendByte, Bytes, clear, isAscii } from '../../texts/bytes'

/** How often percent-encoding is decoded at most. */
const DECODINGS: i32 = 3

const scratch: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

function hexOf(byte: u32): i32 {
  if (byte - 48 < 10) return byte - 48
  return (byte | 32) - 97 < 6 ? (byte | 32) - 87 : -1
}

/** Decodes in place; false if there was nothing to decode. */
function decode(text: Bytes): bool {
  let to = 0
  let changed = false
  for (let at = 0; at < text.used; at++) {
    let byte = <u32>load<u8>(text.data + at)
    if (byte == 37 && at + 2 < text.used) {
      const high = hexOf(load<u8>(text.data + at + 1))
      const low = hexOf(load<u8>(text.data + at + 2))
      if (high >= 0 && low >= 0) {
        byte = (high << 4) | low
        at += 2
        changed = true
      }
    }
    store<u8>(text.data + to++, byte)
  }
  text.used = to
  return changed
}

/**
 * Writes the path without query in lower case, decoded, with `/` for `\`, without parameters (`;a=b`), empty segments, and
 * spaces and dots at the end of segments. False if it has a control character or a segment `.` or `..`.
 */
export function plainPath(from: usize, length: i32, out: Bytes): bool {
  clear(out)
  clear(scratch)
  append(scratch, from, length)
  for (let round = 0; round < DECODINGS && decode(scratch); round++) {}
  let start = 0
  let end = 0
  for (; end <= scratch.used; end++) {
    const byte = end == scratch.used ? 47 : <u32>load<u8>(scratch.data + end)
    if (byte < 32 || byte == 127) return false
    const isLast = byte == 63 || byte == 35
    if (byte != 47 && byte != 92 && !isLast) continue
    if (!appendSegment(out, scratch.data + start, end - start)) return false
    start = end + 1
    if (isLast) return true
  }
  return true
}

function appendSegment(out: Bytes, from: usize, length: i32): bool {
  let size = 0
  while (size < length && load<u8>(from + size) != 59) size++
  let end = size
  while (end > 0 && load<u8>(from + end - 1) == 32) end--
  const isDots = end <= 2 && end > 0 && load<u8>(from) == 46 && (end == 1 || load<u8>(from, 1) == 46)
  if (isDots) return false
  while (end > 0 && (load<u8>(from + end - 1) == 46 || load<u8>(from + end - 1) == 32)) end--
  if (end == 0) return true
  appendByte(out, 47)
  for (let i = 0; i < end; i++) {
    const byte = <u32>load<u8>(from + i)
    appendByte(out, byte - 65 < 26 ? byte | 32 : byte)
  }
  return true
}

export function endsWith(text: Bytes, ending: Bytes): bool {
  const rest = text.used - ending.used
  return rest >= 0 && memory.compare(text.data + rest, ending.data, ending.used) == 0
}

export function endsWithAscii(text: Bytes, ending: string): bool {
  const rest = text.used - ending.length
  return rest >= 0 && isAscii(text.data + <usize>rest, ending.length, ending)
}

export function isSame(one: Bytes, other: Bytes): bool {
  return one.used == other.used && memory.compare(one.data, other.data, one.used) == 0
}

/** Does the path begin with the prefix, by whole segments? Slashes at the end of the prefix do not count. */
export function hasPrefix(path: Bytes, prefix: Bytes): bool {
  let size = prefix.used
  while (size > 0 && load<u8>(prefix.data + size - 1) == 47) size--
  if (path.used < size || memory.compare(path.data, prefix.data, size) != 0) return false
  return path.used == size || load<u8>(path.data + size) == 47
}
