/** The text fields of a multipart body, as the members of a JSON object have them. */
import { isUtf8 } from 'node:buffer'
import type { JsonObject } from '../json/json.ts'
import { asciiName } from '../json/names.ts'
import { LlmError } from '../llm-error.ts'
import { malformed } from './part-head.ts'

/** Maximum size of all text fields of one body in bytes. */
export const maxFieldBytes = 1024 * 1024

/** Fields of which a server would take only one, so that the gateway and the provider might read different ones. */
const single: ReadonlySet<string> = new Set(['model', 'prompt', 'stream', 'response_format'])
const numbers: ReadonlySet<string> = new Set(['temperature', 'n', 'seed'])

/** Returns the name as servers may read it: without case, and without the brackets of lists. */
export const plainName = (name: string): string => asciiName(name.split('[', 1)[0] ?? '').trim()

export interface FormField {
  readonly name: string
  readonly value: string
  /** Number of bytes of the part, with its boundary. */
  readonly size: number
}

/**
 * Checks the name of a part.
 * @throws LlmError 400 if a server may read it as another field, or if it is a repeated field or a file in its place
 */
export function needSingle(name: string, isFile: boolean, isRepeated: boolean): void {
  const plain = plainName(name)
  if (!single.has(plain)) return
  if (name !== plain) throw new LlmError(400, `the field "${name}" must be ${plain}`)
  if (isFile) throw new LlmError(400, `the field ${name} must be text, not a file`)
  if (isRepeated) throw new LlmError(400, `the field ${name} is repeated; send it once`)
}

/** Returns the text of a field. @throws LlmError 400 if it is not UTF-8 */
export function fieldText(bytes: Buffer, name: string, place: string): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  throw malformed(place, `the field ${name} must be text in UTF-8`)
}

/** Returns an object with the fields. The value of a repeated one is a list. */
export function objectOf(fields: readonly FormField[]): JsonObject {
  const values = new Map<string, unknown>()
  for (const { name, value } of fields) {
    const before = values.get(name)
    const read = memberOf(name, value)
    if (!values.has(name)) values.set(name, read)
    else if (Array.isArray(before)) before.push(read)
    else values.set(name, [before, read])
  }
  return Object.fromEntries(values)
}

function memberOf(name: string, text: string): unknown {
  if (name === 'stream' && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  const number = numbers.has(name) && text.trim() !== '' ? Number(text) : Number.NaN
  return Number.isFinite(number) ? number : text
}

/** Returns the texts of the parts that a member becomes. */
export function textsOf(value: unknown): readonly string[] {
  return (Array.isArray(value) ? value : [value]).map((one) =>
    typeof one === 'string' ? one : JSON.stringify(one),
  )
}
