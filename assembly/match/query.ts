/**
 * application/x-www-form-urlencoded queries (WHATWG URL 5.1), decoded while they are compared: `+`
 * is a space, %XX a byte, a `%` that begins no escape is a literal `%`. Of a repeated key the first
 * value counts (Gateway API HTTPQueryParamMatch).
 */
import { arenaAlloc, arenaMark, arenaReset } from '../arena'
import { hexValue } from '../bytes'
import { isPatternMatch } from './pattern'

/** Address after the byte that `decodeAt` gave. */
let after: usize = 0

// @ts-ignore: decorator
@inline
function decodeAt(p: usize, end: usize): u8 {
  const byte = load<u8>(p)
  after = p + 1
  if (byte == 0x2b) return 0x20
  if (byte != 0x25 || end - p < 3) return byte
  const high = hexValue(load<u8>(p + 1))
  const low = hexValue(load<u8>(p + 2))
  if (high < 0 || low < 0) return byte
  after = p + 3
  return <u8>((high << 4) | low)
}

/** Are the decoded bytes of [start, end) exactly these? */
function isDecodedEqual(start: usize, end: usize, bytes: usize, length: usize): bool {
  let p = start
  let i: usize = 0
  while (p < end) {
    if (i == length || decodeAt(p, end) != load<u8>(bytes + i)) return false
    p = after
    i++
  }
  return i == length
}

/** Start and end of the value that `findValue` found. */
let valueStart: usize = 0
let valueEnd: usize = 0

// @ts-ignore: decorator
@inline
function indexOf(start: usize, end: usize, byte: u8): usize {
  let p = start
  while (p < end && load<u8>(p) != byte) p++
  return p
}

/** Finds the first pair whose decoded key is `name`. */
function findValue(start: usize, end: usize, name: usize, length: usize): bool {
  let p = start
  while (p < end) {
    const stop = indexOf(p, end, 0x26)
    const equals = indexOf(p, stop, 0x3d)
    if (stop > p && isDecodedEqual(p, equals, name, length)) {
      valueStart = equals < stop ? equals + 1 : stop
      valueEnd = stop
      return true
    }
    p = stop + 1
  }
  return false
}

/** Is the first value of `name` exactly these bytes? */
export function isQueryEqual(
  start: usize,
  end: usize,
  name: usize,
  nameLength: usize,
  value: usize,
  valueLength: usize,
): bool {
  if (!findValue(start, end, name, nameLength)) return false
  return isDecodedEqual(valueStart, valueEnd, value, valueLength)
}

/** Does the regex match the whole first value of `name`? False when there is no room to decode it. */
export function isQueryMatch(
  start: usize,
  end: usize,
  name: usize,
  nameLength: usize,
  regex: i32,
): bool {
  if (!findValue(start, end, name, nameLength)) return false
  const place = arenaMark()
  const decoded = arenaAlloc(valueEnd - valueStart + 1)
  if (decoded == 0) return false
  let length: usize = 0
  for (let p = valueStart; p < valueEnd; p = after) store<u8>(decoded + length++, decodeAt(p, valueEnd))
  const isMatch = isPatternMatch(regex, decoded, length)
  arenaReset(place)
  return isMatch
}
