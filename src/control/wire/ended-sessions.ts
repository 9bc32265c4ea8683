/** Sessions that have ended, as the configuration stream carries them: JSON. */
import { amount, list, problemOf, record, type Shape, text } from '../../ground/base/shape.ts'
import type { EndedEntry, EndedReport } from '../../ground/model/ended-sessions.ts'

const times = { at: amount, until: amount }
const report = record({
  issuer: text,
  clientId: text,
  entries: list(record({ name: text, ...times })),
})
const entries = list(record({ id: text, ...times }))

export const encodeEnded = (value: EndedReport | readonly EndedEntry[]): Uint8Array =>
  Buffer.from(JSON.stringify(value))

/** @throws if the bytes do not have the shape */
function decode<Value>(shape: Shape<Value>, bytes: Uint8Array): Value {
  const value: unknown = JSON.parse(Buffer.from(bytes).toString())
  const problem = problemOf(shape, value)
  if (problem !== undefined)
    throw new Error(`a message about ended sessions is not valid: ${problem}`)
  return value as Value
}

export const decodeEndedReport = (bytes: Uint8Array): EndedReport => decode(report, bytes)
export const decodeEndedEntries = (bytes: Uint8Array): readonly EndedEntry[] =>
  decode(entries, bytes)
