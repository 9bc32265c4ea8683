/** host[:port] (RFC 9110 4.2, RFC 3986 3.2.2), without user information. */
import { BAD_HOST, HEAD_AUTHORITY, HEAD_HOST, HEAD_PORT, HOST_LIMIT } from '../abi'
import { hexValue, isDigit, skipRegName } from '../bytes'
import { refuse } from '../refusal'

/** Address after the host that begins at `start`; 0 when it is malformed. */
function skipHost(start: usize, end: usize): usize {
  if (start < end && load<u8>(start) == 0x5b) {
    let p = start + 1
    let colons = 0
    for (; p < end; p++) {
      const byte = load<u8>(p)
      if (byte == 0x3a) colons++
      else if (hexValue(byte) < 0 && byte != 0x2e) break
    }
    return p < end && colons > 1 && load<u8>(p) == 0x5d ? p + 1 : 0
  }
  let p = skipRegName(start, end)
  while (p < end && load<u8>(p) == 0x25) {
    if (end - p < 3 || hexValue(load<u8>(p + 1)) < 0 || hexValue(load<u8>(p + 2)) < 0) return 0
    p = skipRegName(p + 3, end)
  }
  return p
}

/** Reads digits up to `end`; -1 without a digit, -2 if they are not a valid port. */
function readPort(start: usize, end: usize): i32 {
  if (start == end) return -1
  if (end - start > 5) return -2
  let port = 0
  for (let p = start; p < end; p++) {
    if (!isDigit(load<u8>(p))) return -2
    port = port * 10 + <i32>load<u8>(p) - 0x30
  }
  return port <= 65535 ? port : -2
}

/**
 * Address after the host without the dot that ends an absolute name, which is the same host
 * (RFC 1034 3.1); 0 where an empty label comes before that dot: `.`, `..`, `a..`.
 */
// @ts-ignore: decorator
@inline
function nameEnd(start: usize, stop: usize): usize {
  if (stop == start || load<u8>(stop - 1) != 0x2e) return stop
  return stop - start > 1 && load<u8>(stop - 2) != 0x2e ? stop - 1 : 0
}

/**
 * Writes AUTHORITY, HOST and PORT of the record; 0, or `code` when the bytes are no authority.
 * AUTHORITY is as it came, HOST without the dot of an absolute name.
 */
export function readAuthority(record: usize, start: usize, end: usize, code: i32): i32 {
  if (end - start > <usize>HOST_LIMIT) return refuse(code, start)
  const stop = skipHost(start, end)
  if (stop == 0) return refuse(code, start)
  let port = -1
  if (stop < end) {
    if (load<u8>(stop) != 0x3a || stop == start) return refuse(code, stop)
    port = readPort(stop + 1, end)
    if (port == -2) return refuse(code, stop + 1)
  }
  const name = nameEnd(start, stop)
  if (name == 0) return refuse(code, start)
  store<u32>(record + HEAD_AUTHORITY, <u32>start)
  store<u32>(record + HEAD_AUTHORITY, <u32>end, 4)
  store<u32>(record + HEAD_HOST, <u32>start)
  store<u32>(record + HEAD_HOST, <u32>name, 4)
  store<i32>(record + HEAD_PORT, port)
  return 0
}

/** The Host field: an authority, or empty (RFC 9112 3.2). */
export function readHostField(record: usize, start: usize, end: usize): i32 {
  return readAuthority(record, start, end, BAD_HOST)
}
