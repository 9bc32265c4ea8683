/**
 * The chunked transfer coding (RFC 9112 7.1), incremental and strict. The scanner never copies: it
 * reports which of the caller's bytes are data, and which are trailer fields.
 *
 *     SIZE -> SIZE_MORE -> SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE
 *                 |          ^  \
 *                 '-> EXTENSION   `-(size 0)-> TRAILER <-> NAME -> VALUE -> VALUE_LF
 *                                                 `-> END_LF -> DONE
 *
 * An extension is a name, or a name and a value, with optional white space around them:
 *
 *     EXTENSION -> EXT_NAME -> EXT_NAME_END -> EXT_VALUE -> EXT_TOKEN -> EXT_END -> SIZE_LF
 *                                                 `-> EXT_QUOTED <-> EXT_ESCAPE
 */
import {
  BAD_CHUNK_END,
  BAD_CHUNK_EXTENSION,
  BAD_CHUNK_SIZE,
  BAD_LINE_END,
  BAD_TRAILER,
  BODY_CONSUMED,
  BODY_DIGITS,
  BODY_EXTENSION_BYTES,
  BODY_FLAGS,
  BODY_HAS_EXTENSIONS,
  BODY_HAS_TRAILERS,
  BODY_PHASE,
  BODY_REMAINING,
  BODY_SIZE,
  BODY_SPANS,
  BODY_SPAN_COUNT,
  BODY_SPAN_LIMIT,
  BODY_TRAILER,
  BODY_TRAILER_BYTES,
  BODY_TRAILER_LIMIT,
  CHUNKS_AGAIN,
  CHUNKS_END,
  CHUNKS_MORE,
  ERROR_ARGUMENT,
  EXTENSION_LIMIT,
  TRAILERS_TOO_LARGE,
} from '../abi'
import { isReadable } from '../arena'
import { hexValue, skipToken, skipValue } from '../bytes'
import { fail, refuse, setOrigin } from '../refusal'

const SIZE = 0
const SIZE_MORE = 1
const EXTENSION = 2
const SIZE_LF = 3
const DATA = 4
const DATA_CR = 5
const DATA_LF = 6
const TRAILER = 7
const NAME = 8
const VALUE = 9
const VALUE_LF = 10
const END_LF = 11
const DONE = 12
const EXT_NAME = 13
const EXT_NAME_END = 14
const EXT_VALUE = 15
const EXT_TOKEN = 16
const EXT_QUOTED = 17
const EXT_ESCAPE = 18
const EXT_END = 19

/** Address after the bytes that the last step took. */
let next: usize = 0

/** A body begins: forgets everything but the limit of its trailers in bytes. */
export function startChunks(body: usize, trailerLimit: i32): i32 {
  if (!isReadable(body, BODY_SIZE)) return fail(ERROR_ARGUMENT)
  memory.fill(body, 0, BODY_SIZE)
  store<i32>(body + BODY_TRAILER_LIMIT, trailerLimit)
  return 0
}

// @ts-ignore: decorator
@inline
function setFlag(body: usize, flag: i32): void {
  store<i32>(body + BODY_FLAGS, load<i32>(body + BODY_FLAGS) | flag)
}

/** One byte of the size line; the phase to go on with, or a refusal. */
function stepSize(body: usize, phase: i32, p: usize): i32 {
  const byte = load<u8>(p)
  next = p + 1
  const value = hexValue(byte)
  if (value >= 0) {
    const size = phase == SIZE ? 0 : load<i32>(body + BODY_REMAINING)
    const digits = phase == SIZE ? 1 : load<i32>(body + BODY_DIGITS) + 1
    if (digits > 8 || size > 0x7ffffff) return refuse(BAD_CHUNK_SIZE, p)
    store<i32>(body + BODY_REMAINING, (size << 4) | value)
    store<i32>(body + BODY_DIGITS, digits)
    return SIZE_MORE
  }
  if (phase == SIZE) return refuse(BAD_CHUNK_SIZE, p)
  if (byte == 0x0d) return SIZE_LF
  if (byte != 0x3b) return refuse(BAD_CHUNK_SIZE, p)
  setFlag(body, BODY_HAS_EXTENSIONS)
  return EXTENSION
}

/** One byte of an extension; the phase to go on with, or a refusal. */
function stepExtension(body: usize, phase: i32, p: usize): i32 {
  next = p + 1
  const bytes = load<i32>(body + BODY_EXTENSION_BYTES) + 1
  const then = bytes > EXTENSION_LIMIT ? -1 : afterExtensionByte(phase, p)
  if (then < 0) return refuse(BAD_CHUNK_EXTENSION, p)
  store<i32>(body + BODY_EXTENSION_BYTES, bytes)
  return then
}

/** The phase after a byte of an extension (RFC 9112 7.1.1); -1 if the byte is not allowed. */
function afterExtensionByte(phase: i32, p: usize): i32 {
  const byte = load<u8>(p)
  if (phase == EXT_QUOTED || phase == EXT_ESCAPE) {
    if (skipValue(p, p + 1) == p) return -1
    if (phase == EXT_ESCAPE) return EXT_QUOTED
    return byte == 0x22 ? EXT_END : byte == 0x5c ? EXT_ESCAPE : EXT_QUOTED
  }
  if (skipToken(p, p + 1) != p) {
    if (phase == EXTENSION || phase == EXT_NAME) return EXT_NAME
    return phase == EXT_VALUE || phase == EXT_TOKEN ? EXT_TOKEN : -1
  }
  if (byte == 0x20 || byte == 0x09) {
    return phase == EXT_NAME ? EXT_NAME_END : phase == EXT_TOKEN ? EXT_END : phase
  }
  if (phase == EXT_VALUE) return byte == 0x22 ? EXT_QUOTED : -1
  if (phase == EXTENSION) return -1
  if (byte == 0x3b) return EXTENSION
  if (byte == 0x0d) return SIZE_LF
  return byte == 0x3d && phase <= EXT_NAME_END ? EXT_VALUE : -1
}

function stepData(body: usize, p: usize, end: usize): i32 {
  const remaining = <usize>load<i32>(body + BODY_REMAINING)
  const taken = min(remaining, end - p)
  const count = load<i32>(body + BODY_SPAN_COUNT)
  const span = body + BODY_SPANS + (<usize>count << 3)
  store<u32>(span, <u32>p)
  store<u32>(span, <u32>(p + taken), 4)
  store<i32>(body + BODY_SPAN_COUNT, count + 1)
  store<i32>(body + BODY_REMAINING, <i32>(remaining - taken))
  next = p + taken
  return remaining == taken ? DATA_CR : DATA
}

function stepTrailer(body: usize, p: usize): i32 {
  if (load<u8>(p) == 0x0d) {
    next = p + 1
    return END_LF
  }
  setFlag(body, BODY_HAS_TRAILERS)
  const stop = skipToken(p, p + 1)
  next = stop
  return stop == p ? refuse(BAD_TRAILER, p) : NAME
}

function stepName(p: usize, end: usize): i32 {
  const stop = skipToken(p, end)
  next = stop
  if (stop >= end) return NAME
  if (load<u8>(stop) != 0x3a) return refuse(BAD_TRAILER, stop)
  next = stop + 1
  return VALUE
}

function stepValue(p: usize, end: usize): i32 {
  const stop = skipValue(p, end)
  next = stop
  if (stop >= end) return VALUE
  if (load<u8>(stop) != 0x0d) return refuse(BAD_TRAILER, stop)
  next = stop + 1
  return VALUE_LF
}

/** A fixed byte; the phase that follows, or a refusal. */
// @ts-ignore: decorator
@inline
function expect(p: usize, byte: u8, then: i32, otherwise: i32): i32 {
  next = p + 1
  return load<u8>(p) == byte ? then : refuse(otherwise, p)
}

function step(body: usize, phase: i32, p: usize, end: usize): i32 {
  switch (phase) {
    case SIZE:
    case SIZE_MORE:
      return stepSize(body, phase, p)
    case EXTENSION:
    case EXT_NAME:
    case EXT_NAME_END:
    case EXT_VALUE:
    case EXT_TOKEN:
    case EXT_QUOTED:
    case EXT_ESCAPE:
    case EXT_END:
      return stepExtension(body, phase, p)
    case SIZE_LF:
      return expect(p, 0x0a, load<i32>(body + BODY_REMAINING) == 0 ? TRAILER : DATA, BAD_LINE_END)
    case DATA:
      return stepData(body, p, end)
    case DATA_CR:
      return expect(p, 0x0d, DATA_LF, BAD_CHUNK_END)
    case DATA_LF:
      return expect(p, 0x0a, SIZE, BAD_CHUNK_END)
    case TRAILER:
      return stepTrailer(body, p)
    case NAME:
      return stepName(p, end)
    case VALUE:
      return stepValue(p, end)
    case VALUE_LF:
      return expect(p, 0x0a, TRAILER, BAD_LINE_END)
    default:
      return expect(p, 0x0a, DONE, BAD_LINE_END)
  }
}

/** Notes [start, end) as trailer bytes; false when the body has too many. */
function noteTrailer(body: usize, start: usize, end: usize): bool {
  if (load<i32>(body + BODY_TRAILER) < 0) store<u32>(body + BODY_TRAILER, <u32>start)
  store<u32>(body + BODY_TRAILER, <u32>end, 4)
  const bytes = load<i32>(body + BODY_TRAILER_BYTES) + <i32>(end - start)
  store<i32>(body + BODY_TRAILER_BYTES, bytes)
  return bytes <= load<i32>(body + BODY_TRAILER_LIMIT)
}

// @ts-ignore: decorator
@inline
function pause(body: usize, phase: i32, at: usize, code: i32): i32 {
  store<i32>(body + BODY_PHASE, phase)
  store<u32>(body + BODY_CONSUMED, <u32>at)
  return code
}

/** CHUNKS_MORE, CHUNKS_END, CHUNKS_AGAIN, or a refusal, after which the body cannot go on. */
export function readChunks(body: usize, start: usize, end: usize): i32 {
  if (end < start || !isReadable(start, end - start) || !isReadable(body, BODY_SIZE)) {
    return fail(ERROR_ARGUMENT)
  }
  setOrigin(start)
  store<i32>(body + BODY_SPAN_COUNT, 0)
  store<i64>(body + BODY_TRAILER, -1)
  let phase = load<i32>(body + BODY_PHASE)
  let p = start
  while (p < end && phase != DONE) {
    if (phase == DATA && load<i32>(body + BODY_SPAN_COUNT) == BODY_SPAN_LIMIT) {
      return pause(body, phase, p, CHUNKS_AGAIN)
    }
    const then = step(body, phase, p, end)
    if (then < 0) return then
    const isField = phase >= TRAILER && phase <= VALUE_LF && then != END_LF
    if (isField && !noteTrailer(body, p, next)) return refuse(TRAILERS_TOO_LARGE, p)
    phase = then
    p = next
  }
  return pause(body, phase, p, phase == DONE ? CHUNKS_END : CHUNKS_MORE)
}
