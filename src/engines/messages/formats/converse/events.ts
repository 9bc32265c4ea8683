/** The events of streamed responses. Their types are names of frames, so that members tell them apart here. */
import { textAt } from '../../common/output-call.ts'
import { detailsIn } from '../../common/response-details.ts'
import type { EventFormat } from '../../format.ts'
import {
  isObject,
  type JsonObject,
  numberAt,
  objectAt,
  stringAt,
  textsAt,
  withFields,
} from '../../json/json.ts'
import { type EventTexts, message, type OptInPiece } from '../../mask/event-texts.ts'
import { mapMember, mapResponseField } from '../../mask/texts.ts'
import { mapEntries, type TextsMap } from '../../mask/texts-map.ts'
import { converseTexts as own } from './own-texts.ts'
import { readConverseUsage } from './usage.ts'

const details = detailsIn({ readUsage: readConverseUsage }, (event) => event)

/** The name of the only group. */
const whole = ''

export const converseEvents: EventFormat = {
  isEvent: ({ role, start, delta, contentBlockIndex, stopReason, usage }) =>
    typeof contentBlockIndex === 'number' ||
    [role, stopReason].some((one) => typeof one === 'string') ||
    [start, delta, usage].some(isObject),
  lastTypes: [],
  isLast: ({ stopReason }) => typeof stopReason === 'string',
  endsWithDone: false,
  isForeignError: ({ error }) => error != null,
  contentOf(event) {
    const delta = objectAt(event, 'delta')
    return [
      ...textsAt(delta, ['text']),
      ...textsAt(objectAt(delta, 'reasoningContent'), ['text']),
      ...textsAt(objectAt(delta, 'toolUse'), ['input']),
    ]
  },
  details: () => details,
  withModel: (event) => event,
  read: readEvent,
  optIn,
  addCalls(event, add) {
    const key = `${numberAt(event, 'contentBlockIndex') ?? 0}`
    const start = objectAt(objectAt(event, 'start'), 'toolUse')
    if (start)
      add(key, { id: textAt(start, 'toolUseId'), name: textAt(start, 'name'), arguments: '' })
    const piece = objectAt(objectAt(event, 'delta'), 'toolUse')
    if (piece) add(key, { id: '', name: '', arguments: textAt(piece, 'input') })
  },
  repeatsTexts: false,
  losesEmptyParts: false,
  groups: { in: () => [whole], of: () => whole },
}

/** Members of a delta with opt-in texts, which continue in later deltas. */
const continued = new Set(['toolUse', 'reasoningContent'])

function optIn(event: JsonObject): readonly OptInPiece[] {
  const delta = objectAt(event, 'delta')
  const index = numberAt(event, 'contentBlockIndex') ?? 0
  const pieces: OptInPiece[] = []
  if (stringAt(objectAt(delta, 'toolUse'), 'input') !== undefined) {
    const path = ['delta', 'toolUse', 'input']
    pieces.push({ place: 'ToolInput', part: `${index}/input`, path })
  }
  if (stringAt(objectAt(delta, 'reasoningContent'), 'text') !== undefined) {
    const path = ['delta', 'reasoningContent', 'text']
    pieces.push({ place: 'Reasoning', part: `${index}/reasoning`, path })
  }
  return pieces
}

function readEvent(event: JsonObject): EventTexts {
  const index = numberAt(event, 'contentBlockIndex')
  const delta = objectAt(event, 'delta')
  const text = stringAt(delta, 'text')
  const repeat = (map: TextsMap) =>
    mapEntries(event, (name, value) => {
      if (name !== 'delta' || !isObject(value)) return mapResponseField(event, name, map, own)
      const reading = { map, scope: own.scopes.response }
      return mapEntries(value, (inner, one) =>
        (inner === 'text' && text !== undefined) || continued.has(inner)
          ? one
          : mapMember(value, 'delta', inner, one, reading),
      )
    })
  if (text !== undefined) {
    const put = ([now = '']: readonly string[], written: JsonObject) =>
      withFields(written, { delta: { ...objectAt(written, 'delta'), text: now } })
    return { pieces: [{ run: message, part: `${index ?? 0}/`, text }], put, repeat }
  }
  const isStop = index !== undefined && delta === undefined && event.start === undefined
  return isStop ? { repeat, ends: `${index}/` } : { repeat }
}
