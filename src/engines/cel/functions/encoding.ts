/** Functions for JSON, base64, URLs, forms, JWTs and digests. */
import { hexDigest } from '../../../ground/base/digest.ts'
import { CelError, isCelError } from '../error.ts'
import { type EvaluationFrame, spend, stepsOfLength } from '../frame.ts'
import { parseJson, writeJson } from '../json.ts'
import {
  type CelMapValue,
  type CelResult,
  type CelValue,
  isList,
  isMap,
  isRecord,
  mapGet,
  mapKeys,
} from '../value.ts'
import { textOf, toText } from './convert.ts'
import {
  badValue,
  type CallStyle,
  type CelFunction,
  type FunctionTable,
  fixed,
  wrongTypes,
} from './define.ts'

/** Defines a function of a string, or of bytes that are decoded as UTF-8. */
function ofContent(
  name: string,
  style: CallStyle,
  apply: (text: string) => CelResult,
): CelFunction {
  return fixed(style, 1, (frame, value) => {
    const text = textOf(value)
    if (text === undefined) return wrongTypes(name, value)
    return spend(frame, stepsOfLength(text.length)) ?? apply(text)
  })
}

function bytesOf(value: CelValue): Uint8Array | undefined {
  if (typeof value === 'string') return Buffer.from(value)
  return value instanceof Uint8Array ? value : undefined
}

/** Defines a function of bytes, or of a string that is encoded as UTF-8. */
function ofBytes(
  name: string,
  style: CallStyle,
  apply: (bytes: Uint8Array) => CelResult,
): CelFunction {
  return fixed(style, 1, (frame, value) => {
    const bytes = bytesOf(value)
    if (bytes === undefined) return wrongTypes(name, value)
    return spend(frame, stepsOfLength(bytes.length)) ?? apply(bytes)
  })
}

const toBase64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')

/** Decodes the standard and the URL-safe alphabet, with or without padding. */
function fromBase64(text: string): CelResult {
  const isBase64 = /^[A-Za-z0-9+/_-]*={0,2}$/.test(text) && text.replace(/=+$/, '').length % 4 !== 1
  return isBase64 ? Buffer.from(text, 'base64') : badValue('the text is not base64')
}

function digest(name: string, algorithm: 'sha1' | 'sha256' | 'md5'): CelFunction {
  return ofBytes(name, 'function', (bytes) => hexDigest(algorithm, bytes))
}

function decodeUrl(text: string): CelResult {
  try {
    return decodeURIComponent(text)
  } catch {
    return badValue('the text is not percent-encoded')
  }
}

/** Encodes everything except the unreserved characters of RFC 3986. */
const encodeUrl = (text: string) =>
  encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/** Encodes a map as application/x-www-form-urlencoded. A list becomes one pair per item. */
function encodeForm(map: CelMapValue, frame: EvaluationFrame): CelResult {
  const form = new URLSearchParams()
  for (const key of mapKeys(map)) {
    const value = mapGet(map, key)
    if (value === undefined) continue
    if (isCelError(value)) return value
    for (const item of isList(value) ? value : [value]) {
      const text = toText(item)
      if (isCelError(text)) return text
      const cost = spend(frame, 1 + stepsOfLength(16 * (text as string).length))
      if (cost !== undefined) return cost
      form.append(String(key), text as string)
    }
  }
  return form.toString()
}

/** Decodes a form to a map of strings. If a name has several values, they become a list. */
function decodeForm(text: string): CelResult {
  const form = new URLSearchParams(text)
  const names = [...new Set(form.keys())]
  return new Map(
    names.map((name) => {
      const [first = '', ...rest] = form.getAll(name)
      return [name, rest.length === 0 ? first : [first, ...rest]]
    }),
  )
}

/** Returns the claims of a JWT without verifying it. */
function jwtPayload(token: string): CelResult {
  const [, payload, signature, ...rest] = token.replace(/^bearer[ \t]+/i, '').split('.')
  const bad = badValue('the text is not a JWT')
  if (payload === undefined || signature === undefined || rest.length > 0) return bad
  const claims = parseJson(Buffer.from(payload, 'base64url').toString('utf8'))
  return isRecord(claims) ? claims : bad
}

function jsonField(content: CelValue, name: CelValue): CelResult {
  const text = textOf(content)
  if (text === undefined || typeof name !== 'string') return wrongTypes('jsonField', content, name)
  const value = parseJson(text)
  if (isCelError(value)) return value
  const found = isMap(value) ? mapGet(value, name) : undefined
  return found === undefined ? missingField : found
}

const missingField = new CelError('missing', 'there is no such field')

export const encodingFunctions: FunctionTable = {
  json: ofContent('json', 'either', parseJson),
  jsonField: fixed('either', 2, (frame, content, name) => {
    const length = typeof content === 'string' || content instanceof Uint8Array ? content.length : 0
    return spend(frame, stepsOfLength(length)) ?? jsonField(content, name)
  }),
  toJson: fixed('either', 1, (frame, value) => writeJson(value, frame)),
  to_json: fixed('either', 1, (frame, value) => writeJson(value, frame)),
  unvalidatedJwtPayload: ofContent('unvalidatedJwtPayload', 'either', jwtPayload),
  'base64.encode': ofBytes('base64.encode', 'function', toBase64),
  'base64.decode': ofContent('base64.decode', 'function', fromBase64),
  base64Encode: ofBytes('base64Encode', 'either', toBase64),
  base64Decode: ofContent('base64Decode', 'either', fromBase64),
  'url.encode': ofContent('url.encode', 'function', encodeUrl),
  'url.decode': ofContent('url.decode', 'function', decodeUrl),
  'form.encode': fixed('function', 1, (frame, value) =>
    isMap(value) ? encodeForm(value, frame) : wrongTypes('form.encode', value),
  ),
  'form.decode': ofContent('form.decode', 'function', decodeForm),
  'sha1.encode': digest('sha1.encode', 'sha1'),
  'sha256.encode': digest('sha256.encode', 'sha256'),
  'md5.encode': digest('md5.encode', 'md5'),
}
