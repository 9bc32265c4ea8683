/** The first line of a request or a response (RFC 9112 3 and 4), into the record. */
import {
  BAD_LINE_END,
  BAD_METHOD,
  BAD_STATUS,
  BAD_TARGET,
  BAD_VERSION,
  FLAG_ABSOLUTE_FORM,
  FLAG_ASTERISK_FORM,
  FLAG_AUTHORITY_FORM,
  HEAD_AUTHORITY,
  HEAD_FLAGS,
  HEAD_HOST,
  HEAD_METHOD,
  HEAD_METHOD_ID,
  HEAD_MINOR,
  HEAD_PATH,
  HEAD_PORT,
  HEAD_QUERY,
  HEAD_REASON,
  HEAD_SCHEME,
  HEAD_STATUS,
  HEAD_TARGET,
  HTTP2_PREFACE,
  INCOMPLETE,
  METHOD_CONNECT,
  METHOD_DELETE,
  METHOD_GET,
  METHOD_HEAD,
  METHOD_LIMIT,
  METHOD_OPTIONS,
  METHOD_OTHER,
  METHOD_PATCH,
  METHOD_POST,
  METHOD_PUT,
  METHOD_TOO_LONG,
  METHOD_TRACE,
  SCHEME_HTTP,
  SCHEME_HTTPS,
  VERSION_UNSUPPORTED,
} from '../abi'
import { isDigit, skipPath, skipTarget, skipToken, skipValue } from '../bytes'
import { refuse } from '../refusal'
import { readAuthority } from './authority'

/** Address after the line; set by `readRequestLine` and `readStatusLine` when they return 0. */
export let afterLine: usize = 0

// @ts-ignore: decorator
@inline
export function setSpan(field: usize, start: usize, end: usize): void {
  store<u64>(field, <u64>start | (<u64>end << 32))
}

function methodId(p: usize, length: usize): i32 {
  const word = load<u32>(p)
  switch (<i32>length) {
    case 3:
      if ((word & 0xffffff) == 0x544547) return METHOD_GET
      return (word & 0xffffff) == 0x545550 ? METHOD_PUT : METHOD_OTHER
    case 4:
      if (word == 0x54534f50) return METHOD_POST
      return word == 0x44414548 ? METHOD_HEAD : METHOD_OTHER
    case 5: // TRACE, PATCH
      if (word == 0x43415254 && load<u8>(p + 4) == 0x45) return METHOD_TRACE
      return word == 0x43544150 && load<u8>(p + 4) == 0x48 ? METHOD_PATCH : METHOD_OTHER
    case 6: // DELE TE
      return word == 0x454c4544 && load<u16>(p + 4) == 0x4554 ? METHOD_DELETE : METHOD_OTHER
    case 7: // CONN NECT, OPTI IONS
      if (word == 0x4e4e4f43 && load<u32>(p + 3) == 0x5443454e) return METHOD_CONNECT
      return word == 0x4954504f && load<u32>(p + 3) == 0x534e4f49 ? METHOD_OPTIONS : METHOD_OTHER
    default:
      return METHOD_OTHER
  }
}

/** `HTTP/` */
const PROTOCOL: usize = memory.data<u8>([0x48, 0x54, 0x54, 0x50, 0x2f])

/** Checks the first `size` bytes of HTTP/d.d as far as they are there. */
function checkVersion(p: usize, end: usize): i32 {
  for (let i: usize = 0; i < 8; i++) {
    if (p + i >= end) return INCOMPLETE
    const byte = load<u8>(p + i)
    const fits =
      i < 5 ? byte == load<u8>(PROTOCOL + i) : i == 6 ? byte == 0x2e : isDigit(byte)
    if (!fits) return refuse(BAD_VERSION, p + i)
  }
  if (load<u8>(p + 5) == 0x31 && load<u8>(p + 7) <= 0x31) return 0
  return refuse(VERSION_UNSUPPORTED, p + 5)
}

/** Checks CRLF at `p` as far as it is there. */
// @ts-ignore: decorator
@inline
export function checkLineEnd(p: usize, end: usize): i32 {
  if (p + 1 < end && load<u16>(p) == 0x0a0d) return 0
  if (p >= end) return INCOMPLETE
  if (load<u8>(p) != 0x0d || p + 1 < end) return refuse(BAD_LINE_END, p)
  return INCOMPLETE
}

/** Version and line end after the target; ` HTTP/1.1` CRLF in one comparison when it is all there. */
function readVersion(record: usize, p: usize, end: usize): i32 {
  if (p + 10 <= end && load<u64>(p) == 0x312e312f50545448 && load<u16>(p + 8) == 0x0a0d) {
    store<i32>(record + HEAD_MINOR, 1)
    afterLine = p + 10
    return 0
  }
  const version = checkVersion(p, end)
  if (version != 0) return version
  store<i32>(record + HEAD_MINOR, <i32>load<u8>(p + 7) - 0x30)
  afterLine = p + 10
  return checkLineEnd(p + 8, end)
}

/** The path and the query of [start, end), which has no `#`. */
function splitPath(record: usize, start: usize, end: usize): void {
  const mark = skipPath(start, end)
  setSpan(record + HEAD_PATH, start, mark)
  if (mark < end) setSpan(record + HEAD_QUERY, mark + 1, end)
}

/** `http://` or `https://`, any case: SCHEME_*, or 0. */
function schemeOf(p: usize, end: usize): i32 {
  if (end - p < 8) return 0
  const word = load<u64>(p) | 0x0000002020202020
  if (word == 0x2f2f3a7370747468) return SCHEME_HTTPS
  return ((load<u64>(p) | 0x20202020) << 8) == 0x2f2f3a7074746800 ? SCHEME_HTTP : 0
}

/** http://authority/path?query (RFC 9112 3.2.2). */
function readAbsoluteForm(record: usize, start: usize, end: usize, scheme: i32): i32 {
  const from = start + (scheme == SCHEME_HTTPS ? 8 : 7)
  let p = from
  while (p < end && load<u8>(p) != 0x2f && load<u8>(p) != 0x3f) p++
  if (p == from) return refuse(BAD_TARGET, from)
  store<i32>(record + HEAD_SCHEME, scheme)
  store<i32>(record + HEAD_FLAGS, load<i32>(record + HEAD_FLAGS) | FLAG_ABSOLUTE_FORM)
  splitPath(record, p, end)
  return readAuthority(record, from, p, BAD_TARGET)
}

/** host:port of CONNECT (RFC 9112 3.2.3); the port is required. */
function readAuthorityForm(record: usize, start: usize, end: usize): i32 {
  const code = readAuthority(record, start, end, BAD_TARGET)
  if (code != 0) return code
  if (load<i32>(record + HEAD_PORT) < 0) return refuse(BAD_TARGET, end)
  setSpan(record + HEAD_PATH, end, end)
  store<i32>(record + HEAD_FLAGS, load<i32>(record + HEAD_FLAGS) | FLAG_AUTHORITY_FORM)
  return 0
}

/** Any form but origin-form. */
function readOtherForm(record: usize, start: usize, end: usize, method: i32): i32 {
  if (method == METHOD_CONNECT) return readAuthorityForm(record, start, end)
  if (end - start == 1 && load<u8>(start) == 0x2a) {
    if (method != METHOD_OPTIONS) return refuse(BAD_TARGET, start)
    setSpan(record + HEAD_PATH, start, end)
    store<i32>(record + HEAD_FLAGS, load<i32>(record + HEAD_FLAGS) | FLAG_ASTERISK_FORM)
    return 0
  }
  const scheme = schemeOf(start, end)
  if (scheme == 0) return refuse(BAD_TARGET, start)
  return readAbsoluteForm(record, start, end, scheme)
}

/** The target at `p`; 0, or a refusal. Leaves its end in TARGET. */
function readTarget(record: usize, p: usize, end: usize, method: i32): i32 {
  const isOrigin = load<u8>(p) == 0x2f && method != METHOD_CONNECT
  const mark = isOrigin ? skipPath(p, end) : p
  const stop = skipTarget(mark, end)
  if (stop >= end) return INCOMPLETE
  if (load<u8>(stop) != 0x20) {
    return refuse(load<u8>(stop) == 0x0d ? BAD_VERSION : BAD_TARGET, stop)
  }
  if (stop == p) return refuse(BAD_TARGET, p)
  setSpan(record + HEAD_TARGET, p, stop)
  if (!isOrigin) return readOtherForm(record, p, stop, method)
  setSpan(record + HEAD_PATH, p, mark)
  if (mark < stop) setSpan(record + HEAD_QUERY, mark + 1, stop)
  return 0
}

/** `PRI * HTTP/2.0` */
const PREFACE: usize = memory.data<u8>([
  0x50, 0x52, 0x49, 0x20, 0x2a, 0x20, 0x48, 0x54, 0x54, 0x50, 0x2f, 0x32, 0x2e, 0x30,
])

/**
 * The one request line of another version with a meaning (RFC 9113 3.4): HTTP2_PREFACE, INCOMPLETE
 * where it may become that, or 0. The method and its space are there.
 */
function checkPreface(method: usize, end: usize): i32 {
  if (load<u32>(method) != 0x20495250) return 0
  for (let i: usize = 4; i < 14; i++) {
    if (method + i >= end) return INCOMPLETE
    if (load<u8>(method + i) != load<u8>(PREFACE + i)) return 0
  }
  return refuse(HTTP2_PREFACE, method)
}

/** 0 with `afterLine` set, INCOMPLETE, or a refusal. */
export function readRequestLine(record: usize, start: usize, end: usize): i32 {
  const stop = skipToken(start, end)
  const length = stop - start
  if (length > <usize>METHOD_LIMIT) return refuse(METHOD_TOO_LONG, start)
  if (stop >= end) return INCOMPLETE
  if (length == 0 || load<u8>(stop) != 0x20) return refuse(BAD_METHOD, stop)
  const preface = checkPreface(start, end)
  if (preface != 0) return preface
  const method = methodId(start, length)
  setSpan(record + HEAD_METHOD, start, stop)
  store<i32>(record + HEAD_METHOD_ID, method)
  const p = stop + 1
  if (p >= end) return INCOMPLETE
  const code = readTarget(record, p, end, method)
  if (code != 0) return code
  return readVersion(record, <usize>load<u32>(record + HEAD_TARGET, 4) + 1, end)
}

/** 0 with `afterLine` set, INCOMPLETE, or a refusal. The reason phrase may be missing with its space. */
export function readStatusLine(record: usize, start: usize, end: usize): i32 {
  const version = checkVersion(start, end)
  if (version != 0) return version
  store<i32>(record + HEAD_MINOR, <i32>load<u8>(start + 7) - 0x30)
  let status = 0
  for (let i: usize = 8; i < 12; i++) {
    if (start + i >= end) return INCOMPLETE
    const byte = load<u8>(start + i)
    if (i == 8 ? byte != 0x20 : !isDigit(byte)) return refuse(BAD_STATUS, start + i)
    if (i > 8) status = status * 10 + <i32>byte - 0x30
  }
  if (status < 100) return refuse(BAD_STATUS, start + 9)
  store<i32>(record + HEAD_STATUS, status)
  let p = start + 12
  if (p >= end) return INCOMPLETE
  if (load<u8>(p) == 0x20) {
    const reason = p + 1
    p = skipValue(reason, end)
    setSpan(record + HEAD_REASON, reason, p)
  } else if (load<u8>(p) != 0x0d) {
    return refuse(BAD_STATUS, p)
  }
  afterLine = p + 2
  return checkLineEnd(p, end)
}
