/**
 * Reads one HTTP/1.1 head into a record of spans (RFC 9112), strictly: what two readers could
 * understand differently is refused, because the difference is what request smuggling lives on.
 *
 * Cost: one pass. A head that arrives in pieces is read in full at its first piece, then only the
 * new bytes are looked at (for forbidden control characters and the end of the head) until the end
 * has come, then it is read once more: at most three passes over any byte, however it is dripped.
 */
import {
  AMBIGUOUS_LENGTH,
  BAD_FIELD_NAME,
  BAD_FIELD_VALUE,
  BAD_LINE_END,
  BAD_TRAILER,
  ERROR_ARGUMENT,
  ERROR_RESPONSE,
  FIELD_INFO,
  FIELD_NAME,
  FIELD_SIZE,
  FIELD_VALUE,
  FLAG_CHUNKED,
  FLAG_CLOSE,
  FLAG_KEEP_ALIVE,
  FLAG_PERSISTENT,
  FLAG_UPGRADE,
  HEAD_CONTENT_LENGTH,
  HEAD_END,
  HEAD_FIELDS,
  HEAD_FIELD_COUNT,
  HEAD_FIELD_LIMIT,
  HEAD_FLAGS,
  HEAD_HOP_COUNT,
  HEAD_HOST_FIELD,
  HEAD_METHOD_ID,
  HEAD_MINOR,
  HEAD_RESUME,
  HEAD_SCHEME,
  HEAD_STATUS,
  HEAD_TOO_LARGE,
  HEAD_UPGRADE,
  INCOMPLETE,
  MISSING_HOST,
  NAME_OTHER,
  OBSOLETE_FOLD,
  TARGET_TOO_LONG,
  TOO_MANY_FIELDS,
} from '../abi'
import { isReadable } from '../arena'
import { isBlank, skipBlank, skipToken, skipValue, trimBlank } from '../bytes'
import { fail, refuse, setOrigin } from '../refusal'
import { ASKS_UPGRADE, forgetNominations, markNominated } from './connection'
import { isResponse, noteKnown, setResponse } from './fields'
import { isNominable, knownName } from './names'
import { afterLine, checkLineEnd, readRequestLine, readStatusLine, setSpan } from './start-line'

const ABSENT: f64 = -1

/** Are the fields that are being read trailers? They end with the bytes, not with an empty line. */
let isTrailer: bool = false

/** Readies the record for a head. Stores rather than `memory.fill`, which is a call into the engine. */
function clear(record: usize): void {
  const limit = load<i32>(record + HEAD_FIELD_LIMIT)
  const absent = i32x4.splat(-1)
  for (let at: usize = 0; at < <usize>HEAD_FIELDS; at += 16) v128.store(record + at, absent)
  store<i32>(record + HEAD_FIELD_LIMIT, limit)
  store<i32>(record + HEAD_FIELD_COUNT, 0)
  store<i32>(record + HEAD_HOP_COUNT, 0)
  store<i32>(record + HEAD_FLAGS, 0)
  store<i32>(record + HEAD_STATUS, 0)
  store<i32>(record + HEAD_METHOD_ID, 0)
  store<i32>(record + HEAD_SCHEME, 0)
  store<i32>(record + HEAD_RESUME, 0)
  store<f64>(record + HEAD_CONTENT_LENGTH, ABSENT)
  forgetNominations()
}

/** Why no field can begin at `p`, or INCOMPLETE. */
function explainName(p: usize, stop: usize, end: usize): i32 {
  if (isBlank(load<u8>(p))) return refuse(OBSOLETE_FOLD, p)
  if (load<u8>(p) == 0x0a) return refuse(BAD_LINE_END, p)
  if (stop >= end) return INCOMPLETE
  return refuse(BAD_FIELD_NAME, stop)
}

function explainValue(p: usize, end: usize): i32 {
  const byte = load<u8>(p)
  return byte == 0x0d || byte == 0x0a ? checkLineEnd(p, end) : refuse(BAD_FIELD_VALUE, p)
}

/** Fields up to and including the empty line; 0 with HEAD_END set, INCOMPLETE, or a refusal. */
function readFields(record: usize, start: usize, end: usize): i32 {
  const limit = load<i32>(record + HEAD_FIELD_LIMIT)
  let p = start
  let count = 0
  let field = record + HEAD_FIELDS
  while (true) {
    if (p >= end) {
      if (!isTrailer) return INCOMPLETE
      store<i32>(record + HEAD_FIELD_COUNT, count)
      return 0
    }
    if (load<u8>(p) == 0x0d && !isTrailer) {
      store<i32>(record + HEAD_FIELD_COUNT, count)
      store<u32>(record + HEAD_END, <u32>(p + 2))
      return checkLineEnd(p, end)
    }
    const colon = skipToken(p, end)
    if (colon >= end || colon == p || load<u8>(colon) != 0x3a) return explainName(p, colon, end)
    if (count == limit) return refuse(TOO_MANY_FIELDS, p)
    const value = skipBlank(colon + 1, end)
    const stop = skipValue(value, end)
    if (stop + 1 >= end || load<u16>(stop) != 0x0a0d) {
      return stop >= end ? INCOMPLETE : explainValue(stop, end)
    }
    const known = knownName(p, colon - p)
    setSpan(field + FIELD_NAME, p, colon)
    setSpan(field + FIELD_VALUE, value, trimBlank(value, stop))
    store<i32>(field + FIELD_INFO, known)
    if (isTrailer && (known != NAME_OTHER || !isNominable(p, colon - p))) {
      return refuse(BAD_TRAILER, p)
    }
    if (known != NAME_OTHER) {
      const code = noteKnown(record, field, count, known)
      if (code != 0) return code
    }
    p = stop + 2
    field += FIELD_SIZE
    count++
  }
}

/** What only the whole head can tell. */
function conclude(record: usize): i32 {
  const isOneDotOne = load<i32>(record + HEAD_MINOR) == 1
  let flags = load<i32>(record + HEAD_FLAGS)
  const end = <usize>load<u32>(record + HEAD_END)
  if (flags & FLAG_CHUNKED && load<f64>(record + HEAD_CONTENT_LENGTH) >= 0) {
    return refuse(AMBIGUOUS_LENGTH, end)
  }
  if (!isResponse && isOneDotOne && load<i32>(record + HEAD_HOST_FIELD) < 0) {
    return refuse(MISSING_HOST, end)
  }
  const asksPersistence = isOneDotOne || (flags & FLAG_KEEP_ALIVE) != 0
  if (asksPersistence && !(flags & FLAG_CLOSE)) flags |= FLAG_PERSISTENT
  const hasUpgrade = load<i32>(record + HEAD_UPGRADE) >= 0
  if (flags & ASKS_UPGRADE && hasUpgrade && isOneDotOne) flags |= FLAG_UPGRADE
  else store<i64>(record + HEAD_UPGRADE, -1)
  store<i32>(record + HEAD_FLAGS, flags & ~ASKS_UPGRADE)
  markNominated(record)
  return 0
}

/** Looks in [from, end) for the empty line: 0 when it is there, INCOMPLETE, or a refusal. */
function findHeadEnd(from: usize, end: usize): i32 {
  let p = from
  while (true) {
    p = skipValue(p, end)
    if (p >= end) return INCOMPLETE
    const byte = load<u8>(p)
    if (byte != 0x0d && byte != 0x0a) return refuse(BAD_FIELD_VALUE, p)
    const code = checkLineEnd(p, end)
    if (code != 0) return code
    p += 2
    if (p + 1 < end && load<u16>(p) == 0x0a0d) return 0
  }
}

/** How many bytes of [start, end) can hold no part of an empty line that is still to come. */
function settled(start: usize, end: usize): i32 {
  let tail = end
  while (tail > start && end - tail < 3) {
    const byte = load<u8>(tail - 1)
    if (byte != 0x0d && byte != 0x0a) break
    tail--
  }
  return <i32>(tail - start)
}

function hasLine(start: usize, end: usize): bool {
  for (let p = start; p < end; p++) if (load<u8>(p) == 0x0a) return true
  return false
}

/** Reads the part that has arrived of a head that begins at `start`. */
function readWhole(record: usize, start: usize, end: usize): i32 {
  let p = start
  // RFC 9112 2.2: one empty line before a request line is ignored; some clients end bodies with it.
  if (!isResponse && p + 1 < end && load<u16>(p) == 0x0a0d) p += 2
  if (p >= end || (!isResponse && p == start && end - p == 1 && load<u8>(p) == 0x0d)) return INCOMPLETE
  const line = isResponse ? readStatusLine(record, p, end) : readRequestLine(record, p, end)
  if (line != 0) return line
  const fields = readFields(record, afterLine, end)
  return fields == 0 ? conclude(record) : fields
}

function read(record: usize, start: usize, end: usize, resume: i32, maxBytes: i32): i32 {
  setOrigin(start)
  clear(record)
  const stop = <usize>maxBytes < end - start ? start + <usize>maxBytes : end
  const found = resume > 0 ? findHeadEnd(start + <usize>resume, stop) : 0
  const code = found == 0 ? readWhole(record, start, stop) : found
  if (code != INCOMPLETE) return code
  if (end - start < <usize>maxBytes) {
    store<i32>(record + HEAD_RESUME, settled(start, end))
    return INCOMPLETE
  }
  const isLater = isResponse || hasLine(start + 2, stop)
  return refuse(isLater ? HEAD_TOO_LARGE : TARGET_TOO_LONG, stop)
}

function isSane(record: usize, start: usize, end: usize, resume: i32, maxBytes: i32): bool {
  if (end < start || resume < 0 || <usize>resume > end - start || maxBytes <= 0) return false
  if (!isReadable(start, end - start) || !isReadable(record, HEAD_FIELDS)) return false
  const limit = load<i32>(record + HEAD_FIELD_LIMIT)
  return limit >= 0 && limit <= 4096 && isReadable(record, <usize>(HEAD_FIELDS + limit * FIELD_SIZE))
}

/**
 * Reads the request head in [start, end). 0: complete, HEAD_END says where the body begins.
 * INCOMPLETE: call again with more bytes after the same ones and `resume` = HEAD_RESUME. Else the
 * reason for refusal, whose status is -code / 100. A head longer than `maxBytes` is refused.
 */
export function readRequest(
  record: usize,
  start: usize,
  end: usize,
  resume: i32,
  maxBytes: i32,
): i32 {
  if (!isSane(record, start, end, resume, maxBytes)) return fail(ERROR_ARGUMENT)
  setResponse(false)
  return read(record, start, end, resume, maxBytes)
}

/** The same for a response head; refusals are ERROR_RESPONSE - reason. */
export function readResponse(
  record: usize,
  start: usize,
  end: usize,
  resume: i32,
  maxBytes: i32,
): i32 {
  if (!isSane(record, start, end, resume, maxBytes)) return fail(ERROR_ARGUMENT)
  setResponse(true)
  const code = read(record, start, end, resume, maxBytes)
  return code < -40000 ? ERROR_RESPONSE - (-code % 100) : code
}

/**
 * Reads trailer fields, [start, end) being whole lines without the empty one, as the chunked
 * scanner reports them. Fields that say where a message goes, how long it is, who sent it or what
 * its bytes mean are refused (RFC 9110 6.5.1). 0, or a refusal.
 */
export function readTrailers(record: usize, start: usize, end: usize): i32 {
  if (!isSane(record, start, end, 0, 1)) return fail(ERROR_ARGUMENT)
  setOrigin(start)
  clear(record)
  isTrailer = true
  const code = readFields(record, start, end)
  isTrailer = false
  return code == INCOMPLETE ? refuse(BAD_TRAILER, end) : code
}
