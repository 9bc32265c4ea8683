// Documents in base64 and in data URLs, which vendors and translations decode: guards read what is encoded if it is text.
import { TEXTS_NOT_TEXT } from './abi'
import { append, Bytes, clear, failure, isAscii, reserve, setFailure } from './bytes'
import { guardCount } from './chain'
import { addEdit, EDIT_TEXT } from './edits'
import { maskText } from './group'
import { DATA, FILE_DATA, FILENAME, MEDIA_TYPE, TYPE } from './names'
import { rw } from './state'
import { KIND_STRING, memberOf, readName, readText, textLength, textStart } from './tape'

/** The string contains no encoded text that is known here; binary data; a text. */
export const ENCODED_NONE: i32 = 0
export const ENCODED_BINARY: i32 = 1
export const ENCODED_TEXT: i32 = 2

const value: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const plain: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
/** Bytes before the data in `value`. */
let prefix: i32 = 0
/** Whether the data is not in base64, but has its bytes as they are or as `%XX`. */
let isPlain: bool = false

/** What a string member of an object contains: ENCODED_*. The text is masked by the next `maskEncoded`. */
export function encodedKind(holder: i32, index: i32, name: i32): i32 {
  isPlain = false
  if (name == DATA) return dataKind(holder, index)
  const isFile = name == FILE_DATA
  if (!isFile && !isUrlName(index)) return ENCODED_NONE
  readText(index)
  const scheme = schemeEnd()
  if (!isFile && scheme == 0) return ENCODED_NONE
  clear(value)
  append(value, textStart, textLength)
  prefix = 0
  const fileName = isFile ? memberOf(holder, FILENAME, KIND_STRING) : 0
  return scheme > 0 ? urlKind(fileName, scheme) : kindOfFile(fileName)
}

/** The number of bytes of `data:`, and of spaces before it, at the beginning of the text; 0 if it is no data URL. */
function schemeEnd(): i32 {
  let at = 0
  while (at < textLength && load<u8>(textStart + at) <= 32) at++
  return textLength - at >= 5 && isLower(textStart + at, 5, 'data:') ? at + 5 : 0
}

/** Is it the text, in any case? */
function isLower(from: usize, length: i32, text: string): bool {
  if (length != text.length) return false
  for (let i = 0; i < length; i++) {
    const byte = <u32>load<u8>(from + i)
    if ((byte - 65 < 26 ? byte | 32 : byte) != <u32>load<u16>(changetype<usize>(text) + (<usize>i << 1))) return false
  }
  return true
}

/** The data of a source: plain text, or base64 of a media type. */
function dataKind(holder: i32, index: i32): i32 {
  const type = memberOf(holder, TYPE, KIND_STRING)
  if (type == 0) return ENCODED_NONE
  readText(type)
  if (!isAscii(textStart, textLength, 'base64')) return ENCODED_NONE
  const media = memberOf(holder, MEDIA_TYPE, KIND_STRING)
  if (media != 0) {
    readText(media)
    if (isBinaryType(textStart, textLength)) return ENCODED_BINARY
  }
  const isText = media == 0 || isTextType(textStart, textLength)
  readText(index)
  clear(value)
  append(value, textStart, textLength)
  prefix = 0
  return isText ? ENCODED_TEXT : kindOfBytes(false)
}

/** Has the member one of the names url, uri, *_url, *_uri? */
function isUrlName(index: i32): bool {
  readName(index)
  const length = textLength
  if (length < 3 || (length > 3 && load<u8>(textStart + length - 4) != 95)) return false
  return isAscii(textStart + length - 3, 3, 'url') || isAscii(textStart + length - 3, 3, 'uri')
}

/** Reads `data:TYPE;...;base64,DATA` and `data:TYPE;...,DATA` (RFC 2397); `scheme` is the number of bytes before TYPE. */
function urlKind(fileName: i32, scheme: i32): i32 {
  let from = value.data + scheme
  const stop = value.data + value.used
  let comma = from
  while (comma < stop && load<u8>(comma) != 44) comma++
  if (comma == stop) return ENCODED_NONE
  let typeEnd = from
  while (typeEnd < comma && load<u8>(typeEnd) != 59) typeEnd++
  const isBase64 = endsWithBase64(typeEnd, comma)
  while (from < typeEnd && load<u8>(from) <= 32) from++
  while (from < typeEnd && load<u8>(typeEnd - 1) <= 32) typeEnd--
  prefix = <i32>(comma + 1 - value.data)
  const length = <i32>(typeEnd - from)
  if (!isBase64) {
    if (fileName == 0 && isBinaryType(from, length)) return ENCODED_BINARY
    isPlain = true
    return ENCODED_TEXT
  }
  for (let at = comma + 1; at < stop; at++) {
    // Escapes in base64 are not judged, but make a text unreadable.
    if (load<u8>(at) == 37) return isBinaryType(from, length) ? ENCODED_BINARY : ENCODED_TEXT
  }
  if (isAscii(from, length, 'application/octet-stream')) return kindOfFile(fileName)
  if (length == 0 || isTextType(from, length)) return ENCODED_TEXT
  // A file name may say otherwise than the type.
  if (isBinaryType(from, length)) return fileName == 0 ? ENCODED_BINARY : kindOfFile(fileName)
  return kindOfBytes(false)
}

/** Is `base64` the last parameter between the places, in any case and maybe between spaces? */
function endsWithBase64(from: usize, to: usize): bool {
  let start = to
  while (start > from && load<u8>(start - 1) != 59) start--
  if (start == from) return false
  let end = to
  while (start < end && load<u8>(start) <= 32) start++
  while (start < end && load<u8>(end - 1) <= 32) end--
  return isLower(start, <i32>(end - start), 'base64')
}

const LOWER: usize = memory.data(24)

/** Is it text/*, or application/json, xml, yaml or x-yaml? The case does not matter. */
function isTextType(from: usize, length: i32): bool {
  let size = 0
  for (; size < length && size < 24; size++) {
    const byte = <u32>load<u8>(from + size)
    if (byte == 59) break
    store<u8>(LOWER + size, byte - 65 < 26 ? byte | 32 : byte)
  }
  if (size >= 5 && isAscii(LOWER, 5, 'text/')) return true
  if (size < 12 || size == 24 || !isAscii(LOWER, 12, 'application/')) return false
  const rest = LOWER + 12
  const left = size - 12
  return isAscii(rest, left, 'json') || isAscii(rest, left, 'xml') || isAscii(rest, left, 'x-yaml') || isAscii(rest, left, 'yaml')
}

/** Is it audio, video, a font, a PDF or an image other than SVG? Their bytes are not judged: a PDF may be ASCII. */
function isBinaryType(from: usize, length: i32): bool {
  let size = 0
  for (; size < length && size < 24; size++) {
    const byte = <u32>load<u8>(from + size)
    if (byte == 59) break
    store<u8>(LOWER + size, byte - 65 < 26 ? byte | 32 : byte)
  }
  if (isAscii(LOWER, min(size, 6), 'image/')) return !isAscii(LOWER, size, 'image/svg+xml')
  if (isAscii(LOWER, min(size, 6), 'audio/') || isAscii(LOWER, min(size, 6), 'video/')) return true
  return isAscii(LOWER, min(size, 5), 'font/') || isAscii(LOWER, size, 'application/pdf')
}

/** Is the byte a control character that texts do not have? NUL is not one here: it is every other byte of UTF-16. */
// @ts-ignore: decorator
@inline
function isControl(byte: u32): bool {
  return byte < 32 && byte != 0 && (byte < 9 || byte > 13) && byte != 27
}

/**
 * Judges the base64 in `value` by its bytes, as the most lenient decoder reads it: they are a text if they have no
 * control characters. If it `mayBePlain`, a string that is no base64 is a text as it is.
 */
function kindOfBytes(mayBePlain: bool): i32 {
  let bits = 0
  let count = 0
  let size = 0
  let zeros = 0
  let hasControls = false
  for (let i = prefix; i < value.used; i++) {
    const char = <u32>load<u8>(value.data + i)
    const digit = char == 45 ? 62 : char == 95 ? 63 : valueOf(char)
    if (digit < 0) {
      const isSpace = char == 32 || char == 9 || char == 10 || char == 13
      if (mayBePlain && !isSpace && char != 61) return ENCODED_NONE
      continue
    }
    bits = ((bits << 6) | digit) & 0xffffff
    count += 6
    if (count < 8) continue
    count -= 8
    const byte = <u32>(bits >> count) & 0xff
    if (isControl(byte)) hasControls = true
    size++
    if (byte == 0) zeros++
  }
  const isText = zeros == 0 ? size > 0 : zeros < size && zeros >= (size + 2) / 3
  return isText && !hasControls ? ENCODED_TEXT : ENCODED_BINARY
}

const EXTENSION: usize = memory.data(8)

/** A file whose type only its name shows. */
function kindOfFile(fileName: i32): i32 {
  if (fileName == 0) return kindOfUnnamed()
  readText(fileName)
  let size = 0
  while (size < textLength && load<u8>(textStart + textLength - 1 - size) != 46) size++
  if (size == textLength || size == 0 || size > 4) return kindOfUnnamed()
  const from = textStart + textLength - size
  for (let i = 0; i < size; i++) {
    const byte = <u32>load<u8>(from + i)
    store<u8>(EXTENSION + i, byte - 65 < 26 ? byte | 32 : byte)
  }
  const isKnown =
    isAscii(EXTENSION, size, 'txt') || isAscii(EXTENSION, size, 'md') || isAscii(EXTENSION, size, 'csv') ||
    isAscii(EXTENSION, size, 'html') || isAscii(EXTENSION, size, 'json') || isAscii(EXTENSION, size, 'xml')
  if (isKnown) return ENCODED_TEXT
  if (isAscii(EXTENSION, size, 'pdf')) return ENCODED_BINARY
  const isOffice =
    isAscii(EXTENSION, size, 'doc') || isAscii(EXTENSION, size, 'docx') || isAscii(EXTENSION, size, 'xls') ||
    isAscii(EXTENSION, size, 'xlsx')
  return isOffice ? kindOfBytes(prefix == 0) : kindOfUnnamed()
}

/** A file of an unknown type; "JVBERi" is the beginning of a PDF. */
function kindOfUnnamed(): i32 {
  const isPdf = value.used - prefix >= 6 && isAscii(value.data + prefix, 6, 'JVBERi')
  return isPdf ? ENCODED_BINARY : kindOfBytes(prefix == 0)
}

/** Masks the text in the string of which `encodedKind` has said that it contains one. */
export function maskEncoded(index: i32): void {
  clear(plain)
  const isDecoded = isPlain ? unescape() : decode()
  if (!isDecoded || !isUtf8(plain.data, plain.used)) {
    if (guardCount(rw.guards) > 0) setFailure(TEXTS_NOT_TEXT)
    return
  }
  rw.textBytes += <f64>plain.used
  if (guardCount(rw.guards) == 0) return
  const start = rw.side.used
  const made = maskText(plain.data, plain.used)
  if (made == 0 || failure != 0) {
    rw.side.used = start
    return
  }
  clear(plain)
  append(plain, rw.side.data + start, rw.side.used - start)
  rw.side.used = start
  append(rw.side, value.data, prefix)
  if (isPlain) escape()
  else encode()
  addEdit(index, EDIT_TEXT, <u32>start, rw.side.used - start)
}

function valueOf(byte: u32): i32 {
  if (byte - 65 < 26) return byte - 65
  if (byte - 97 < 26) return byte - 71
  if (byte - 48 < 10) return byte + 4
  return byte == 43 ? 62 : byte == 47 ? 63 : -1
}

/** Decodes `value` behind the prefix to `plain`; false unless every decoder reads the same bytes. */
function decode(): bool {
  const from = value.data + prefix
  const length = value.used - prefix
  if (length & 3) return false
  if (!reserve(plain, length)) return true
  let end = length
  if (length > 0 && load<u8>(from + length - 1) == 61) end -= load<u8>(from + length - 2) == 61 ? 2 : 1
  let bits = 0
  let count = 0
  for (let i = 0; i < end; i++) {
    const digit = valueOf(load<u8>(from + i))
    if (digit < 0) return false
    bits = ((bits << 6) | digit) & 0xffffff
    count += 6
    if (count < 8) continue
    count -= 8
    store<u8>(plain.data + plain.used, bits >> count)
    plain.used++
  }
  return true
}

function hexOf(byte: u32): i32 {
  if (byte - 48 < 10) return byte - 48
  const letter = byte | 32
  return letter - 97 < 6 ? letter - 87 : -1
}

/** Decodes the escapes in `value` behind the prefix to `plain`; false if it has bytes that parsers of URLs remove. */
function unescape(): bool {
  const from = value.data + prefix
  const length = value.used - prefix
  if (!reserve(plain, length)) return true
  for (let i = 0; i < length; i++) {
    let byte = <u32>load<u8>(from + i)
    if (byte < 32) return false
    if (byte == 37 && i + 2 < length) {
      const high = hexOf(load<u8>(from + i + 1))
      const low = hexOf(load<u8>(from + i + 2))
      if (high >= 0 && low >= 0) {
        byte = (high << 4) | low
        i += 2
      }
    }
    store<u8>(plain.data + plain.used, byte)
    plain.used++
  }
  return true
}

const HEX: string = '0123456789ABCDEF'

/** Appends `plain` to the side buffer as `encodeURIComponent` writes it. */
function escape(): void {
  if (!reserve(rw.side, plain.used * 3)) return
  for (let i = 0; i < plain.used; i++) {
    const byte = <u32>load<u8>(plain.data + i)
    const isLetter = (byte | 32) - 97 < 26 || byte - 48 < 10 || byte == 95
    // - . ! ~ * ' ( )
    const isMark = byte == 45 || byte == 46 || byte == 33 || byte == 126 || byte - 39 < 4
    if (isLetter || isMark) {
      store<u8>(rw.side.data + rw.side.used, byte)
      rw.side.used++
      continue
    }
    const at = rw.side.data + rw.side.used
    store<u8>(at, 37)
    store<u8>(at + 1, load<u8>(changetype<usize>(HEX) + (<usize>(byte >> 4) << 1)))
    store<u8>(at + 2, load<u8>(changetype<usize>(HEX) + (<usize>(byte & 15) << 1)))
    rw.side.used += 3
  }
}

const DIGITS: string = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

function putDigit(digit: i32): void {
  store<u8>(rw.side.data + rw.side.used, load<u8>(changetype<usize>(DIGITS) + (<usize>(digit & 63) << 1)))
  rw.side.used++
}

/** Appends `plain` to the side buffer in base64. */
function encode(): void {
  if (!reserve(rw.side, ((plain.used + 2) / 3) * 4)) return
  for (let i = 0; i < plain.used; i += 3) {
    const left = plain.used - i
    const at = plain.data + i
    const first = <i32>load<u8>(at)
    const second = left > 1 ? <i32>load<u8>(at, 1) : 0
    const third = left > 2 ? <i32>load<u8>(at, 2) : 0
    putDigit(first >> 2)
    putDigit((first << 4) | (second >> 4))
    if (left > 1) putDigit((second << 2) | (third >> 6))
    if (left > 2) putDigit(third)
    for (let pad = left; pad < 3; pad++) {
      store<u8>(rw.side.data + rw.side.used, 61)
      rw.side.used++
    }
  }
}

/** Is it UTF-8 without NUL, which other encodings have? */
function isUtf8(from: usize, length: i32): bool {
  let at = from
  const end = from + length
  while (at < end) {
    const byte = <u32>load<u8>(at)
    const size = byte == 0 ? 0 : byte < 0x80 ? 1 : byte - 0xc2 < 30 ? 2 : byte - 0xe0 < 16 ? 3 : byte - 0xf0 < 5 ? 4 : 0
    if (size == 0 || at + size > end) return false
    for (let i = 1; i < size; i++) if ((load<u8>(at + i) & 0xc0) != 0x80) return false
    const second = size > 1 ? <u32>load<u8>(at, 1) : 0
    if (byte == 0xe0 && second < 0xa0) return false
    if (byte == 0xed && second > 0x9f) return false
    if (byte == 0xf0 && second < 0x90) return false
    if (byte == 0xf4 && second > 0x8f) return false
    at += size
  }
  return true
}
