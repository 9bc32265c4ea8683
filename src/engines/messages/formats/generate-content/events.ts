/** The events of streamed responses, each of which is a piece of a response. */
import { detailsIn, withModel } from '../../common/response-details.ts'
import type { EventFormat } from '../../format.ts'
import {
  isObject,
  isObjects,
  type JsonObject,
  listAt,
  mapList,
  numberAt,
  objectAt,
  stringAt,
  withFields,
} from '../../json/json.ts'
import type { OptInPiece, Piece, ReadEvent } from '../../mask/event-texts.ts'
import { mapMember, mapResponseField } from '../../mask/texts.ts'
import { mapEntries, type TextsMap } from '../../mask/texts-map.ts'
import { generateContentTexts as own } from './own-texts.ts'
import { callOfPart, partsOf } from './texts.ts'
import { readGenerateContentUsage } from './usage.ts'

export const modelField = 'modelVersion'
export const usageField = 'usageMetadata'

const details = detailsIn(
  { readUsage: readGenerateContentUsage, modelField, usageField },
  (event) => event,
)

const nameOf = (candidate: unknown): string => `${numberAt(candidate, 'index') ?? 0}`

const hasEnded = (candidate: unknown): boolean => stringAt(candidate, 'finishReason') !== undefined

/** Whether a part is a text of the response, and no thought. */
const isTextPart = (part: unknown): part is JsonObject & { readonly text: string } =>
  isObject(part) && typeof part.text === 'string' && part.thought !== true

const isThought = (part: unknown): part is JsonObject =>
  isObject(part) && part.thought === true && typeof part.text === 'string'

/** Finds thoughts. Arguments of functions come whole, so they are not pieces. */
const optIn = (event: JsonObject): readonly OptInPiece[] =>
  listAt(event, 'candidates').flatMap((candidate, at) =>
    partsOf(candidate).flatMap((part, index): OptInPiece[] => {
      const path = ['candidates', at, 'content', 'parts', index, 'text']
      return isThought(part) ? [{ place: 'Reasoning', part: `${nameOf(candidate)}/`, path }] : []
    }),
  )

export const generateContentEvents: EventFormat = {
  isEvent: ({ candidates, usageMetadata, promptFeedback, error }) =>
    error == null && (isObjects(candidates) || isObject(usageMetadata) || isObject(promptFeedback)),
  lastTypes: [],
  isLast: (event) =>
    (event.candidates !== undefined && listAt(event, 'candidates').some(hasEnded)) ||
    (event.promptFeedback !== undefined &&
      stringAt(objectAt(event, 'promptFeedback'), 'blockReason') !== undefined),
  endsWithDone: false,
  isForeignError: ({ type, error }) => type === 'error' || typeof error === 'string',
  contentOf: (event) => listAt(event, 'candidates').flatMap(partsOf).flatMap(contentOfPart),
  details: () => details,
  withModel: (event, model) => withModel(event, model, modelField),
  read: readEvent,
  optIn,
  addCalls(event, add) {
    for (const candidate of listAt(event, 'candidates')) {
      for (const part of partsOf(candidate)) {
        const call = callOfPart(part)
        // Calls come whole.
        if (call) add(`${nameOf(candidate)}/${call.id}/${call.name}/${call.arguments}`, call)
      }
    }
  },
  repeatsTexts: false,
  losesEmptyParts: false,
  groups: {
    in: (event) => listAt(event, 'candidates').map(nameOf),
    of: (part) => part.split('/')[0] ?? '',
  },
}

function contentOfPart(part: unknown): string[] {
  const text = stringAt(part, 'text')
  if (text) return [text]
  const call = callOfPart(part)
  return call === undefined ? [] : [call.name + call.arguments]
}

/** Maps the text parts of a candidate with `mapText`, and everything else with `mapOther`. */
function mapCandidate(
  candidate: unknown,
  mapText: (text: string) => string,
  mapOther: TextsMap,
): unknown {
  if (!isObject(candidate)) return mapResponseField({ candidate }, 'candidate', mapOther, own)
  const reading = { map: mapOther, scope: own.scopes.response }
  const mapPart = (part: unknown) => {
    if (isThought(part)) {
      return mapEntries(part, (name, value) =>
        name === 'text' ? value : mapMember(part, undefined, name, value, reading),
      )
    }
    if (!isTextPart(part)) return mapMember({ part }, undefined, 'part', part, reading)
    return mapEntries(part, (name, value) =>
      name === 'text' ? mapText(part.text) : mapMember(part, undefined, name, value, reading),
    )
  }
  return mapEntries(candidate, (name, value) => {
    if (name !== 'content' || !isObject(value)) {
      return mapMember(candidate, undefined, name, value, reading)
    }
    return mapEntries(value, (inner, parts) =>
      inner === 'parts' && Array.isArray(parts)
        ? mapList(parts, mapPart)
        : mapMember(value, undefined, inner, parts, reading),
    )
  })
}

const keep: TextsMap = (texts) => texts

const mapCandidates = (event: JsonObject, map: (candidate: unknown) => unknown): JsonObject =>
  Array.isArray(event.candidates)
    ? withFields(event, { candidates: mapList(event.candidates, map) })
    : event

function readEvent(event: JsonObject): ReturnType<ReadEvent> {
  const candidates = listAt(event, 'candidates')
  const pieces = candidates.flatMap((candidate) => {
    const part = `${nameOf(candidate)}/`
    return partsOf(candidate)
      .filter(isTextPart)
      .map(({ text }): Piece => ({ run: part, part, text }))
  })
  const put = (texts: readonly string[], written: JsonObject) => {
    let at = 0
    return mapCandidates(written, (one) => mapCandidate(one, () => texts[at++] ?? '', keep))
  }
  const repeat = (map: TextsMap) => {
    const mapped = mapCandidates(event, (one) => mapCandidate(one, (text) => text, map))
    return mapEntries(mapped, (name, value) =>
      name === 'candidates' ? value : mapResponseField(mapped, name, map, own),
    )
  }
  return { pieces, put, repeat }
}
