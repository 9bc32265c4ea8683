import type { History } from '../../common/history.ts'
import { standInSignature } from '../../common/thought-signature.ts'
import { field, isObject, type JsonObject, mapField, stringAt } from '../../json/json.ts'
import { isSealedThought } from './sealed-thoughts.ts'

const signatureNames = ['thoughtSignature', 'thought_signature'] as const

/** Replaces signatures with thoughts of other vendors, which vendor D refuses; a thought stays without one. */
function settlePart(part: unknown): unknown {
  if (!isObject(part)) return part
  const name = signatureNames.find((one) => isSealedThought(stringAt(part, one) ?? ''))
  if (name === undefined) return part
  const { [name]: _sealed, ...rest } = part
  return field(rest, 'thought') === true ? rest : { ...rest, [name]: standInSignature }
}

const settleContent = (content: unknown): unknown =>
  isObject(content) ? mapField(content, 'parts', settlePart) : content

const notSealed = (bytes: Buffer, start: number, end: number): boolean =>
  !isSealedThought(bytes.toString('latin1', start, end))

export const generateContentHistory: History = {
  settle: (body: JsonObject) => mapField(body, 'contents', settleContent),
  rules: { checked: { thoughtSignature: notSealed, thought_signature: notSealed } },
}
