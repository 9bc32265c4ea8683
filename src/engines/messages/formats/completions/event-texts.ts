/** The texts in events. */
import {
  isObject,
  type JsonObject,
  listAt,
  mapList,
  numberAt,
  stringAt,
  withFields,
} from '../../json/json.ts'
import {
  eventOf,
  everything,
  labelsOf,
  mapRestOfEvent,
  type Piece,
  type ReadEvent,
} from '../../mask/event-texts.ts'
import { answerScope, isLabel, isSkipped, putText, textOfPart } from '../../mask/text-fields.ts'
import { mapAnswerField, mapBlockRest, mapEntries, type TextsMap } from '../../mask/texts.ts'
import { mapMessageOfChoice } from './texts.ts'

type MapPiece = (text: string, field: string) => string

/** Maps the texts of a delta together with their fields; each field is a separate text. */
function mapDelta(delta: JsonObject, mapPiece: MapPiece): JsonObject {
  return mapEntries(delta, (name, value) => {
    if (typeof value === 'string') {
      const isText = value !== '' && !isSkipped(delta, 'delta', name, answerScope)
      return isText && !isLabel(delta, name) ? mapPiece(value, name) : value
    }
    if (name === 'audio' && isObject(value)) {
      const transcript = stringAt(value, 'transcript')
      return transcript === undefined || transcript === ''
        ? value
        : withFields(value, { transcript: mapPiece(transcript, 'transcript') })
    }
    if (name !== 'content' || !Array.isArray(value)) return value
    return value.map((part) => {
      const text = textOfPart(part, answerScope)
      return text === undefined || text === ''
        ? part
        : putText(part, mapPiece(text, 'content'), answerScope)
    })
  })
}

/** Maps what a delta contains besides the texts of `mapDelta`. */
function mapRestOfDelta(delta: JsonObject, map: TextsMap): JsonObject {
  return mapEntries(delta, (name, value) => {
    if (typeof value === 'string') return value
    if (name === 'audio' && isObject(value)) return mapBlockRest(value, map, name)
    if (name !== 'content' || !Array.isArray(value)) return mapAnswerField(delta, name, map)
    return value.map((part) => (isObject(part) ? mapBlockRest(part, map, name) : part))
  })
}

/** Maps what a choice contains besides the pieces of text. */
function mapRestOfChoice(choice: unknown, map: TextsMap): unknown {
  if (!isObject(choice)) return mapAnswerField({ choice }, 'choice', map)
  const { message, ...others } = choice
  // Before the choice is complete, a match in a message that is repeated so far may be undecided.
  const known = isObject(message) && choice.finish_reason == null ? others : choice
  return mapEntries(known, (name, value) => {
    if (name === 'text' && typeof value === 'string') return value
    if (name === 'delta' && isObject(value)) return mapRestOfDelta(value, map)
    if (name === 'message' && isObject(value)) return mapMessageOfChoice(value, map)
    return mapAnswerField(choice, name, map)
  })
}

function mapChoices(event: JsonObject, map: (choice: unknown) => unknown): JsonObject {
  if (!Array.isArray(event.choices)) return event
  return withFields(event, {
    choices: mapList(event.choices, map),
  })
}

/** Maps the pieces of text in a choice. Some vendors send `text` instead of a delta. */
function mapPieces(choice: unknown, mapPiece: MapPiece): unknown {
  if (!isObject(choice)) return choice
  return mapEntries(choice, (name, value) => {
    if (name === 'text' && typeof value === 'string' && value !== '') return mapPiece(value, name)
    return name === 'delta' && isObject(value) ? mapDelta(value, mapPiece) : value
  })
}

/** Returns the fields of a choice that continue the text in `field`. */
function choiceText(field: string, text: string): JsonObject {
  if (field === 'text') return { text }
  return { delta: field === 'transcript' ? { audio: { transcript: text } } : { [field]: text } }
}

/** Reads an event. A finish reason completes a choice. */
export const readCompletionsEvent: ReadEvent = (event, name) => {
  const pieces: Piece[] = []
  const choices = listAt(event, 'choices')
  for (const choice of choices.filter(isObject)) {
    const index = numberAt(choice, 'index') ?? 0
    mapPieces(choice, (text, field) => {
      const run = `${index}/${field}`
      const more = (rest: string) => {
        const only = { index, ...choiceText(field, rest), logprobs: null, finish_reason: null }
        return eventOf(name, { ...labelsOf(event), choices: [only] })
      }
      pieces.push({ run, part: run, text, more })
      return text
    })
  }
  const ended = choices
    .filter((choice) => isObject(choice) && choice.finish_reason != null)
    .map((choice) => `${numberAt(choice, 'index') ?? 0}/`)
  const completes = event.error == null ? ended : everything
  const put = (texts: readonly string[], written: JsonObject) => {
    let at = 0
    return mapChoices(written, (choice) => mapPieces(choice, () => texts[at++] ?? ''))
  }
  const repeat = (map: TextsMap) => {
    const mapped = mapChoices(event, (choice) => mapRestOfChoice(choice, map))
    return mapRestOfEvent(mapped, map, Array.isArray(event.choices) ? 'choices' : '')
  }
  return { pieces, put, completes, repeat }
}
