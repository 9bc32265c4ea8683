/**
 * Field names that decide framing, persistence or forwarding. Names are compared as little-endian
 * words with bit 5 set: among token bytes only a letter folds onto a letter and only `-` onto `-`,
 * so that is exact for names made of letters and hyphens.
 */
import {
  NAME_CONNECTION,
  NAME_CONTENT_LENGTH,
  NAME_EXPECT,
  NAME_HOST,
  NAME_KEEP_ALIVE,
  NAME_OTHER,
  NAME_PROXY_AUTHENTICATE,
  NAME_PROXY_CONNECTION,
  NAME_TE,
  NAME_TRAILER,
  NAME_TRANSFER_ENCODING,
  NAME_UPGRADE,
} from '../abi'
import { isEqualFolded } from '../bytes'

// @ts-ignore: decorator
@inline
function low2(p: usize): u16 {
  return load<u16>(p) | 0x2020
}

// @ts-ignore: decorator
@inline
function low4(p: usize): u32 {
  return load<u32>(p) | 0x20202020
}

// @ts-ignore: decorator
@inline
function low8(p: usize): u64 {
  return load<u64>(p) | 0x2020202020202020
}

/** NAME_* of a field name; the bytes are known to be a token. */
export function knownName(p: usize, length: usize): i32 {
  switch (<i32>length) {
    case 2:
      return low2(p) == 0x6574 ? NAME_TE : NAME_OTHER
    case 4:
      return low4(p) == 0x74736f68 ? NAME_HOST : NAME_OTHER
    case 6: // expe ct
      return low4(p) == 0x65707865 && low2(p + 4) == 0x7463 ? NAME_EXPECT : NAME_OTHER
    case 7: // upgr rade, trai iler
      if (low4(p) == 0x72677075 && low4(p + 3) == 0x65646172) return NAME_UPGRADE
      return low4(p) == 0x69617274 && low4(p + 3) == 0x72656c69 ? NAME_TRAILER : NAME_OTHER
    case 10: // connecti on, keep-ali ve
      if (low8(p) == 0x697463656e6e6f63 && low2(p + 8) == 0x6e6f) return NAME_CONNECTION
      return low8(p) == 0x696c612d7065656b && low2(p + 8) == 0x6576 ? NAME_KEEP_ALIVE : NAME_OTHER
    case 14: // content- t-length
      return low8(p) == 0x2d746e65746e6f63 && low8(p + 6) == 0x6874676e656c2d74
        ? NAME_CONTENT_LENGTH
        : NAME_OTHER
    case 16: // proxy-co nnection
      return low8(p) == 0x6f632d79786f7270 && low8(p + 8) == 0x6e6f697463656e6e
        ? NAME_PROXY_CONNECTION
        : NAME_OTHER
    case 17: // transfer -encodin g
      return low8(p) == 0x726566736e617274 &&
        low8(p + 8) == 0x6e69646f636e652d &&
        (load<u8>(p + 16) | 0x20) == 0x67
        ? NAME_TRANSFER_ENCODING
        : NAME_OTHER
    case 18: // proxy-au thentica te
      return low8(p) == 0x75612d79786f7270 &&
        low8(p + 8) == 0x616369746e656874 &&
        low2(p + 16) == 0x6574
        ? NAME_PROXY_AUTHENTICATE
        : NAME_OTHER
    default:
      return NAME_OTHER
  }
}

/** `close`, any case. */
export function isClose(p: usize, length: usize): bool {
  return length == 5 && low4(p) == 0x736f6c63 && (load<u8>(p + 4) | 0x20) == 0x65
}

/** `chunked`, any case. */
export function isChunked(p: usize, length: usize): bool {
  return length == 7 && low4(p) == 0x6e756863 && low4(p + 3) == 0x64656b6e
}

/** `trailers`, any case. */
export function isTrailers(p: usize, length: usize): bool {
  return length == 8 && low8(p) == 0x7372656c69617274
}

/** `100-continue`, any case. */
export function isContinue(p: usize, length: usize): bool {
  return length == 12 && low8(p) == 0x746e6f632d303031 && low4(p + 8) == 0x65756e69
}

/** Length, then the name; 0 ends the table. */
const KEPT: usize = memory.data<u8>([
  13, 97, 117, 116, 104, 111, 114, 105, 122, 97, 116, 105, 111, 110, // authorization
  19, 112, 114, 111, 120, 121, 45, 97, 117, 116, 104, 111, 114, 105, 122, 97, 116, 105, 111, 110, // proxy-authorization
  6, 99, 111, 111, 107, 105, 101, // cookie
  10, 115, 101, 116, 45, 99, 111, 111, 107, 105, 101, // set-cookie
  9, 120, 45, 97, 112, 105, 45, 107, 101, 121, // x-api-key
  7, 97, 112, 105, 45, 107, 101, 121, // api-key
  14, 120, 45, 103, 111, 111, 103, 45, 97, 112, 105, 45, 107, 101, 121, // x-goog-api-key
  9, 102, 111, 114, 119, 97, 114, 100, 101, 100, // forwarded
  3, 118, 105, 97, // via
  9, 120, 45, 114, 101, 97, 108, 45, 105, 112, // x-real-ip
  12, 120, 45, 114, 101, 113, 117, 101, 115, 116, 45, 105, 100, // x-request-id
  11, 116, 114, 97, 99, 101, 112, 97, 114, 101, 110, 116, // traceparent
  10, 116, 114, 97, 99, 101, 115, 116, 97, 116, 101, // tracestate
  15, 120, 45, 114, 101, 116, 114, 121, 45, 97, 116, 116, 101, 109, 112, 116, // x-retry-attempt
  0,
])

/** The same, for families of names that begin alike. */
const KEPT_FAMILIES: usize = memory.data<u8>([
  8, 99, 111, 110, 116, 101, 110, 116, 45, // content-
  12, 120, 45, 102, 111, 114, 119, 97, 114, 100, 101, 100, 45, // x-forwarded-
  0,
])

/**
 * May a Connection field nominate this name for removal? Not what says where the message goes, how
 * long it is, what its bytes mean, who sent it, or what gateways before us have set: a client that
 * has us remove one of those changes what the upstream believes.
 */
export function isNominable(p: usize, length: usize): bool {
  const known = knownName(p, length)
  if (known == NAME_HOST || known == NAME_CONTENT_LENGTH || known == NAME_TRANSFER_ENCODING) {
    return false
  }
  for (let row = KEPT; load<u8>(row) != 0; row += <usize>load<u8>(row) + 1) {
    const size = <usize>load<u8>(row)
    if (size == length && isEqualFolded(p, row + 1, size)) return false
  }
  for (let row = KEPT_FAMILIES; load<u8>(row) != 0; row += <usize>load<u8>(row) + 1) {
    const size = <usize>load<u8>(row)
    if (size <= length && isEqualFolded(p, row + 1, size)) return false
  }
  return true
}
