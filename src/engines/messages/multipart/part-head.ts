/**
 * Reads the heads of multipart bodies (RFC 7578, RFC 2046). Servers read unusual heads differently, and a part that the
 * gateway takes for a file may be a field to the provider, so that everything unusual is refused.
 */
import { LlmError } from '../llm-error.ts'

/** Maximum size of the head of one part in bytes. */
export const maxPartHead = 8 * 1024
const maxNameLength = 256

export interface PartHead {
  readonly name: string
  readonly isFile: boolean
}

const mediaType = /^multipart\/form-data[ \t]*;[ \t]*boundary=(?:"([^"\\]*)"|([^\s";,]+))[ \t]*$/i
const boundaryText = /^[0-9A-Za-z'()+_,./:=?-]{1,70}$/

/** Whether a request has a multipart body, well-formed or not. */
export const isMultipart = (contentType: string | undefined): boolean =>
  contentType !== undefined && /^\s*multipart\//i.test(contentType)

/** Returns the boundary of a body. @throws LlmError 400 if the type does not say exactly one */
export function boundaryOf(contentTypes: readonly string[]): string {
  const [only = ''] = contentTypes
  const found = contentTypes.length === 1 ? mediaType.exec(only) : null
  const boundary = found?.[1] ?? found?.[2]
  if (boundary !== undefined && boundaryText.test(boundary)) return boundary
  throw new LlmError(
    400,
    'the header content-type must be multipart/form-data with one boundary and nothing else',
  )
}

const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/
const parameter =
  /[ \t]*;[ \t]*([0-9A-Za-z*]+)=(?:"([^"\\]*(?:\\[^"][^"\\]*)*)"|([!#$%&'*+.^_`|~0-9A-Za-z-]+))/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const control = /[\u0000-\u0008\u000a-\u001f\u007f]/
const plainTypes = /^(?:text\/plain|application\/json)[ \t]*(?:;[ \t]*charset=(?:utf-8|"utf-8"))?$/i
const plainEncodings = /^(?:7bit|8bit|binary)$/i

/** Reads the head of a part. `place` names the part in errors. @throws LlmError 400 */
export function readPartHead(head: Buffer, place: string): PartHead {
  const fields = new Map<string, string>()
  for (const line of head.toString('utf8').split('\r\n')) {
    const [, name = '', value = ''] = fieldLine.exec(line) ?? []
    const key = name.toLowerCase()
    if (key === '' || control.test(line)) throw malformed(place, 'a header line is malformed')
    if (fields.has(key)) throw malformed(place, `the header ${key} is repeated`)
    fields.set(key, value.trim())
  }
  const read = readDisposition(fields.get('content-disposition'), place)
  if (!plainEncodings.test(fields.get('content-transfer-encoding') ?? 'binary')) {
    throw malformed(place, 'the content must not be encoded')
  }
  if (!read.isFile && !plainTypes.test(fields.get('content-type') ?? 'text/plain')) {
    throw malformed(place, `the field ${read.name} must be plain text in UTF-8`)
  }
  return read
}

function readDisposition(value: string | undefined, place: string): PartHead {
  const named = value === undefined ? null : /^form-data(?=[ \t;])/i.exec(value)
  if (value === undefined || named === null) {
    throw malformed(place, 'content-disposition must be form-data with a name')
  }
  const found = new Map<string, string>()
  for (let at = named[0].length; at < value.length; at = parameter.lastIndex) {
    parameter.lastIndex = at
    const [, written = '', quoted, token = ''] = parameter.exec(value) ?? []
    const key = written.toLowerCase()
    if (!['name', 'filename', 'filename*'].includes(key) || found.has(key)) {
      throw malformed(
        place,
        'content-disposition has a parameter that servers may read differently',
      )
    }
    found.set(key, quoted ?? token)
  }
  const name = found.get('name')
  if (name === undefined || name === '' || name === '_charset_' || /\\|%22/.test(name)) {
    throw malformed(place, 'content-disposition must have a plain name')
  }
  if (name.length > maxNameLength) {
    throw malformed(place, `the name has more than ${maxNameLength} characters`)
  }
  return { name, isFile: found.size > 1 }
}

/** `place` names the part, such as `part 2`. */
export const malformed = (place: string, problem: string): LlmError =>
  new LlmError(400, `the multipart body is malformed: ${place}: ${problem}`)
