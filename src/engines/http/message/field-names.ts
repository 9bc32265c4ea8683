import { latin1Text } from '../../../ground/base/latin1.ts'

export interface FieldName {
  /** The name as the peer sent it. */
  readonly text: string
  readonly lower: string
}

/** Number of places; a power of two. Names that share one replace each other. */
const places = 512
/** Longer names are not kept. */
const maxLength = 40

const known: (FieldName | undefined)[] = new Array(places).fill(undefined)

/** Returns the name of a field. Messages have few different ones, so that most exist already. */
export function fieldName(bytes: Buffer, start: number, end: number): FieldName {
  const length = end - start
  if (length > maxLength) return makeName(bytes, start, end)
  let hash = length
  for (let at = start; at < end; at++) hash = (hash * 31 + (bytes[at] ?? 0)) | 0
  const place = (hash ^ (hash >>> 9)) & (places - 1)
  const kept = known[place]
  if (kept !== undefined && isText(kept.text, bytes, start, length)) return kept
  const made = makeName(bytes, start, end)
  known[place] = made
  return made
}

function makeName(bytes: Buffer, start: number, end: number): FieldName {
  const text = latin1Text(bytes, start, end)
  return { text, lower: text.toLowerCase() }
}

function isText(text: string, bytes: Buffer, start: number, length: number): boolean {
  if (text.length !== length) return false
  for (let at = 0; at < length; at++) if (text.charCodeAt(at) !== bytes[start + at]) return false
  return true
}
