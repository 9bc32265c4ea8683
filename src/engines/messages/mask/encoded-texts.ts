/** Text documents in base64, which translations and vendors decode: guards read what is encoded. */
import { dataOfUrl, isTextType, typeOfFile } from '../common/media.ts'
import { type JsonObject, stringAt } from '../json/json.ts'
import { isUrlName } from './text-fields.ts'

/** A text that a string contains in base64, behind a prefix. */
interface EncodedText {
  readonly prefix: string
  readonly data: string
}

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

/** True if every decoder reads the same bytes. */
export const isPlainBase64 = ({ data }: EncodedText): boolean =>
  data.length % 4 === 0 && base64.test(data)

/**
 * Returns the text in a string of an object: the data of a document, a file, or a data URL. `notText` if the
 * string is binary; undefined if it is encoded in no way that is known here.
 */
export function encodedText(holder: JsonObject, name: string): EncodedText | 'notText' | undefined {
  const value = stringAt(holder, name)
  if (value === undefined) return undefined
  if (name === 'data') {
    if (holder.type !== 'base64') return undefined
    const isText = isTextType(stringAt(holder, 'media_type') ?? 'text/plain')
    return isText ? { prefix: '', data: value } : 'notText'
  }
  if (name === 'file_data') return fileText(value, stringAt(holder, 'filename'))
  return isUrlName(name) && value.startsWith('data:') ? fileText(value, undefined) : undefined
}

function fileText(value: string, name: string | undefined): EncodedText | 'notText' | undefined {
  if (!value.startsWith('data:')) {
    return isTextType(typeOfFile(name, value)) ? { prefix: '', data: value } : 'notText'
  }
  const url = dataOfUrl(value)
  if (url === undefined) return undefined
  const prefix = value.slice(0, value.length - url.data.length)
  return isTextType(typeOfData(url, name)) ? { prefix, data: url.data } : 'notText'
}

/** Returns the type by which a translation decides whether a file is a text. */
function typeOfData({ mediaType, data }: { mediaType: string; data: string }, name?: string) {
  return mediaType === 'application/octet-stream' ? typeOfFile(name, data) : mediaType
}

export const decoded = ({ data }: EncodedText): string =>
  Buffer.from(data, 'base64').toString('utf8')

export const encoded = ({ prefix }: EncodedText, text: string): string =>
  prefix + Buffer.from(text).toString('base64')
