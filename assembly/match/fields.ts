/** The fields that decide the length of a message, its destination and the life of its connection. */
import {
  BAD_CONTENT_LENGTH,
  BAD_TRANSFER_ENCODING,
  DUPLICATE_CONTENT_LENGTH,
  DUPLICATE_HOST,
  FIELD_INFO,
  FIELD_VALUE,
  FLAG_ABSOLUTE_FORM,
  FLAG_AUTHORITY_FORM,
  FLAG_CHUNKED,
  FLAG_EXPECT_CONTINUE,
  FLAG_EXPECT_OTHER,
  HEAD_AUTHORITY,
  HEAD_CONTENT_LENGTH,
  HEAD_FLAGS,
  HEAD_HOP_COUNT,
  HEAD_HOST,
  HEAD_HOST_FIELD,
  HEAD_MINOR,
  HEAD_PORT,
  HEAD_UPGRADE,
  INFO_HOP,
  NAME_CONNECTION,
  NAME_CONTENT_LENGTH,
  NAME_EXPECT,
  NAME_HOST,
  NAME_KEEP_ALIVE,
  NAME_PROXY_AUTHENTICATE,
  NAME_PROXY_CONNECTION,
  NAME_TE,
  NAME_TRAILER,
  NAME_TRANSFER_ENCODING,
  NAME_UPGRADE,
  TRANSFER_ENCODING_ON_HTTP_10,
} from '../abi'
import { isDigit } from '../bytes'
import { refuse } from '../refusal'
import { readHostField } from './authority'
import { readConnection, readTe } from './connection'
import { isChunked, isContinue } from './names'
import { setSpan } from './start-line'

/** 2^53 - 1: larger lengths are not exact in a JavaScript number. */
const LENGTH_LIMIT: u64 = 9007199254740991

/** Is the head that is being read a response's? */
export let isResponse: bool = false

export function setResponse(is: bool): void {
  isResponse = is
}

/** Decimal digits only, once (RFC 9112 6.3: anything else is a framing error). */
function readContentLength(record: usize, start: usize, end: usize): i32 {
  if (load<f64>(record + HEAD_CONTENT_LENGTH) >= 0) return refuse(DUPLICATE_CONTENT_LENGTH, start)
  if (start == end || end - start > 16) return refuse(BAD_CONTENT_LENGTH, start)
  let length: u64 = 0
  for (let p = start; p < end; p++) {
    if (!isDigit(load<u8>(p))) return refuse(BAD_CONTENT_LENGTH, p)
    length = length * 10 + <u64>(load<u8>(p) - 0x30)
  }
  if (length > LENGTH_LIMIT) return refuse(BAD_CONTENT_LENGTH, start)
  store<f64>(record + HEAD_CONTENT_LENGTH, <f64>length)
  return 0
}

function readTransferEncoding(record: usize, start: usize, end: usize): i32 {
  if (load<i32>(record + HEAD_MINOR) == 0) return refuse(TRANSFER_ENCODING_ON_HTTP_10, start)
  const flags = load<i32>(record + HEAD_FLAGS)
  if (flags & FLAG_CHUNKED || !isChunked(start, end - start)) {
    return refuse(BAD_TRANSFER_ENCODING, start)
  }
  return FLAG_CHUNKED
}

/** Host is used only if the target has no authority of its own, but it must be well-formed. */
function readHost(record: usize, index: i32, start: usize, end: usize): i32 {
  if (isResponse) return 0
  if (load<i32>(record + HEAD_HOST_FIELD) >= 0) return refuse(DUPLICATE_HOST, start)
  store<i32>(record + HEAD_HOST_FIELD, index)
  if (!(load<i32>(record + HEAD_FLAGS) & (FLAG_ABSOLUTE_FORM | FLAG_AUTHORITY_FORM))) {
    return readHostField(record, start, end)
  }
  const authority = load<u64>(record + HEAD_AUTHORITY)
  const host = load<u64>(record + HEAD_HOST)
  const port = load<i32>(record + HEAD_PORT)
  const code = readHostField(record, start, end)
  store<u64>(record + HEAD_AUTHORITY, authority)
  store<u64>(record + HEAD_HOST, host)
  store<i32>(record + HEAD_PORT, port)
  return code
}

function readUpgrade(record: usize, start: usize, end: usize): i32 {
  if (load<i32>(record + HEAD_UPGRADE) < 0) setSpan(record + HEAD_UPGRADE, start, end)
  return 0
}

function readExpect(record: usize, start: usize, end: usize): i32 {
  if (isResponse || load<i32>(record + HEAD_MINOR) == 0) return 0
  return isContinue(start, end - start) ? FLAG_EXPECT_CONTINUE : FLAG_EXPECT_OTHER
}

/** What a field with a meaning here does to the record: flags to add, or a refusal. */
function readKnown(record: usize, known: i32, index: i32, start: usize, end: usize): i32 {
  switch (known) {
    case NAME_HOST:
      return readHost(record, index, start, end)
    case NAME_CONTENT_LENGTH:
      return readContentLength(record, start, end)
    case NAME_TRANSFER_ENCODING:
      return readTransferEncoding(record, start, end)
    case NAME_CONNECTION:
      return readConnection(start, end)
    case NAME_UPGRADE:
      return readUpgrade(record, start, end)
    case NAME_TE:
      return readTe(start, end)
    case NAME_EXPECT:
      return readExpect(record, start, end)
    default:
      return 0
  }
}

/** RFC 9110 7.6.1. A response keeps Proxy-Authenticate: it may be meant for the client. */
function isHopByHop(known: i32): bool {
  switch (known) {
    case NAME_TRANSFER_ENCODING:
    case NAME_CONNECTION:
    case NAME_KEEP_ALIVE:
    case NAME_PROXY_CONNECTION:
    case NAME_TE:
    case NAME_UPGRADE:
      return true
    case NAME_PROXY_AUTHENTICATE:
      return !isResponse
    default:
      return false
  }
}

/** Takes note of one field of a known name: 0, or a refusal. */
export function noteKnown(record: usize, field: usize, index: i32, known: i32): i32 {
  const start = <usize>load<u32>(field + FIELD_VALUE)
  const end = <usize>load<u32>(field + FIELD_VALUE, 4)
  const flags = readKnown(record, known, index, start, end)
  if (flags < 0) return flags
  store<i32>(record + HEAD_FLAGS, load<i32>(record + HEAD_FLAGS) | flags)
  if (isHopByHop(known)) {
    store<i32>(field + FIELD_INFO, known | INFO_HOP)
    store<i32>(record + HEAD_HOP_COUNT, load<i32>(record + HEAD_HOP_COUNT) + 1)
  }
  return 0
}
