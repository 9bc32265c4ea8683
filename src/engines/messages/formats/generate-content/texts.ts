/** The texts in whole responses, and the calls of functions there. */
import type { OutputCall } from '../../common/output-call.ts'
import { textAt } from '../../common/output-call.ts'
import { field, isObject, type JsonObject, listAt, mapList, objectAt } from '../../json/json.ts'
import { otherSlots, type ResponseSlots, responseSlot, type Slot } from '../../mask/slot.ts'
import {
  mapMember,
  mapParts,
  type Reading,
  type ResponseTexts,
  responseRules,
} from '../../mask/texts.ts'
import { mapEntries } from '../../mask/texts-map.ts'
import { generateContentTexts as own } from './own-texts.ts'

export const candidateTexts: ResponseTexts = {
  field: 'candidates',
  map: (value, reading) =>
    Array.isArray(value) ? mapList(value, (one) => mapCandidate(one, reading)) : value,
}

function mapCandidate(candidate: unknown, reading: Reading): unknown {
  if (!isObject(candidate))
    return mapMember({ candidate }, undefined, 'candidate', candidate, reading)
  return mapEntries(candidate, (name, value) =>
    name === 'content' && isObject(value)
      ? mapContent(value, reading)
      : mapMember(candidate, undefined, name, value, reading),
  )
}

const mapContent = (content: JsonObject, reading: Reading): JsonObject =>
  mapEntries(content, (name, value) =>
    name === 'parts' && Array.isArray(value)
      ? mapParts(value, name, reading, responseRules)
      : mapMember(content, undefined, name, value, reading),
  )

export const candidateSlots: ResponseSlots = {
  messages: (body, scope) =>
    listAt(body, 'candidates').map((candidate): Slot => {
      return responseSlot(objectAt(candidate, 'content') ?? {}, 'parts', own, scope)
    }),
  besideMessage: (candidate, scope) => [
    ...otherSlots(objectAt(candidate, 'content'), ['parts'], own, scope),
    ...otherSlots(candidate, ['content'], own, scope),
  ],
}

/** Returns the parts of a candidate. */
export const partsOf = (candidate: unknown): readonly unknown[] =>
  listAt(objectAt(candidate, 'content'), 'parts')

export const callOfPart = (part: unknown): OutputCall | undefined => {
  const call = objectAt(part, 'functionCall')
  if (call === undefined) return undefined
  const args = JSON.stringify(field(call, 'args') ?? {})
  return { id: textAt(call, 'id'), name: textAt(call, 'name'), arguments: args }
}

export const callsInCandidates = (body: JsonObject): OutputCall[] =>
  listAt(body, 'candidates')
    .flatMap(partsOf)
    .flatMap((part) => callOfPart(part) ?? [])
