/** The texts in whole responses. */
import { isObject, type JsonObject, mapList } from '../../json/json.ts'
import { responseScope } from '../../mask/text-fields.ts'
import {
  mapContent,
  mapMember,
  mapParts,
  type Reading,
  type ResponseTexts,
  responseRules,
} from '../../mask/texts.ts'
import { mapEntries, type TextsMap } from '../../mask/texts-map.ts'

export const completionsTexts: ResponseTexts = {
  field: 'choices',
  map: (value, reading) =>
    Array.isArray(value)
      ? mapList(value, (choice) => mapChoice(choice, reading))
      : mapChoice(value, reading),
}

/** Maps a choice. Servers put the text into `message`, or into `delta`, as in a stream. */
function mapChoice(choice: unknown, reading: Reading): unknown {
  if (!isObject(choice)) return mapContent(choice, reading)
  return mapEntries(choice, (name, value) =>
    (name === 'message' || name === 'delta') && isObject(value)
      ? mapChoiceMessage(value, reading)
      : mapMember(choice, undefined, name, value, reading),
  )
}

export const mapMessageOfChoice = (message: JsonObject, map: TextsMap): JsonObject =>
  mapChoiceMessage(message, { map, scope: responseScope })

function mapChoiceMessage(message: JsonObject, reading: Reading): JsonObject {
  return mapEntries(message, (name, value) =>
    name === 'content' && Array.isArray(value)
      ? mapParts(value, name, reading, responseRules)
      : mapMember(message, undefined, name, value, reading),
  )
}
