/** Documents in base64 and in data URLs, which translations and vendors decode: guards read what is encoded if it is text. */
import { isUtf8 } from 'node:buffer'
import { isTextType, typeOfFile } from '../common/media.ts'
import { type JsonObject, stringAt } from '../json/json.ts'
import { type EncodedText, isUrlName, type TextScope } from './text-fields.ts'

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

/** What parsers of URLs remove. */
const removed = /[^\P{Cc}\u007f-\u009f]/u

/** True if every decoder reads the same text: UTF-8, in base64 without anything else, or in a URL without controls. */
export function isReadable(document: EncodedText): boolean {
  const { data, isPlain } = document
  if (isPlain ? removed.test(data) : data.length % 4 !== 0 || !base64.test(data)) return false
  const bytes = bytesOf(document)
  return isUtf8(bytes) && !bytes.includes(0)
}

/**
 * Returns the text in a string of an object: the data of a document, a file, or a data URL. `notText` if the
 * string is binary; undefined if it is encoded in no way that is known here.
 */
export function encodedText(
  holder: JsonObject,
  name: string,
  { own }: TextScope,
): EncodedText | 'notText' | undefined {
  const value = stringAt(holder, name)
  if (value === undefined) return undefined
  const found = own?.encoded(holder, name)
  if (found !== undefined) return found
  if (name === 'data') {
    if (holder.type !== 'base64') return undefined
    return textOfType(stringAt(holder, 'media_type') ?? 'text/plain', { prefix: '', data: value })
  }
  if (name === 'file_data') return fileText(value, stringAt(holder, 'filename'))
  return isUrlName(name) ? urlText(value, undefined) : undefined
}

function fileText(value: string, name: string | undefined): EncodedText | 'notText' | undefined {
  if (!isDataUrl.test(value)) {
    const type = typeOfFile(name, value)
    if (!isTextType(type) && !isBinaryType(type) && !lenientBase64.test(value)) return undefined
    return textOfType(type, { prefix: '', data: value })
  }
  return urlText(value, name)
}

/** The scheme has no case, and parsers skip spaces before it. */
const isDataUrl = /^[\0- ]*data:/i
/** RFC 2397. */
const dataUrl = /^([\0- ]*data:([^;,]*)((?:;[^;,]*)*),)(.*)$/is
const outerSpaces = /^[\0- ]+|[\0- ]+$/g
const inBase64 = /;[\0- ]*base64[\0- ]*$/i

/** Returns the text in a data URL; undefined for other values. */
export function urlText(
  value: string,
  name: string | undefined,
): EncodedText | 'notText' | undefined {
  const [, prefix = '', mediaType = '', parameters = '', data = ''] = dataUrl.exec(value) ?? []
  if (prefix === '') return undefined
  const type = mediaType.replace(outerSpaces, '') || 'text/plain'
  if (!inBase64.test(parameters)) {
    return isBinaryType(type) && name === undefined ? 'notText' : { prefix, data, isPlain: true }
  }
  // Escapes in base64 are not judged, but make a text unreadable.
  if (data.includes('%')) return isBinaryType(type) ? 'notText' : { prefix, data }
  const found = typeOfData({ mediaType: type, data }, name)
  // A file name may say otherwise than the type.
  const isUnclear = isBinaryType(found) && name !== undefined
  return textOfType(isUnclear ? typeOfFile(name, data) : found, { prefix, data })
}

/** Bytes of these types are not judged: a PDF may be ASCII. */
const binaryTypes =
  /^(?:audio\/|video\/|font\/|image\/(?!svg\+xml(?:;|$))|application\/pdf(?:;|$))/i
const isBinaryType = (mediaType: string): boolean => binaryTypes.test(mediaType)

/** What lenient decoders read; a file with other characters is a text as it is. */
const lenientBase64 = /^[\w+/=\- \t\r\n]*$/
const ignored = /[^\w+/-]+/g

/** Returns the text of a known type; other documents are judged by their bytes. */
export function textOfType(mediaType: string, document: EncodedText): EncodedText | 'notText' {
  if (isTextType(mediaType)) return document
  if (isBinaryType(mediaType)) return 'notText'
  return isTextData(document.data) ? document : 'notText'
}

/** Whether data in base64, as a lenient decoder reads it, is a text. */
export const isTextData = (data: string): boolean =>
  isText(Buffer.from(data.replaceAll(ignored, ''), 'base64'))

/** Whether bytes have no control characters, except that texts in UTF-16 have many zeros. */
function isText(bytes: Uint8Array): boolean {
  let zeros = 0
  for (const byte of bytes) {
    if (byte === 0) zeros++
    else if (byte < 32 && (byte < 9 || byte > 13) && byte !== 27) return false
  }
  return zeros === 0
    ? bytes.length > 0
    : zeros < bytes.length && zeros >= Math.floor((bytes.length + 2) / 3)
}

/** Returns the type by which a translation decides whether a file is a text. */
function typeOfData({ mediaType, data }: { mediaType: string; data: string }, name?: string) {
  return mediaType === 'application/octet-stream' ? typeOfFile(name, data) : mediaType
}

const percent = 0x25

/** Returns the bytes of a text in a URL; `%` without two digits is itself. */
function unescaped(data: string): Buffer {
  const bytes = Buffer.from(data)
  let used = 0
  for (let at = 0; at < bytes.length; at++) {
    const digits = bytes[at] === percent ? bytes.toString('latin1', at + 1, at + 3) : ''
    const isEscape = /^[0-9a-f]{2}$/i.test(digits)
    bytes[used++] = isEscape ? Number.parseInt(digits, 16) : (bytes[at] ?? 0)
    if (isEscape) at += 2
  }
  return bytes.subarray(0, used)
}

const bytesOf = ({ data, isPlain }: EncodedText): Buffer =>
  isPlain ? unescaped(data) : Buffer.from(data, 'base64')

export const decoded = (document: EncodedText): string => bytesOf(document).toString('utf8')

export const encoded = ({ prefix, isPlain }: EncodedText, text: string): string =>
  prefix +
  (isPlain ? encodeURIComponent(text.toWellFormed()) : Buffer.from(text).toString('base64'))
