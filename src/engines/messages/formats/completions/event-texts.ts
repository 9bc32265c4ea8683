/** The texts in events. */
import {
  field,
  isObject,
  type JsonObject,
  listAt,
  mapList,
  numberAt,
  objectAt,
  stringAt,
  withFields,
} from '../../json/json.ts'
import { type DeltaMap, keepPieces, mapDelta } from '../../mask/delta-texts.ts'
import {
  asideOf,
  mapRestOfEvent,
  type OptInPiece,
  type Piece,
  type ReadEvent,
  textPaths,
} from '../../mask/event-texts.ts'
import { reasoningFields } from '../../mask/text-fields.ts'
import { mapResponseField } from '../../mask/texts.ts'
import { mapEntries, type TextsMap } from '../../mask/texts-map.ts'
import { isFinished } from './ending.ts'
import { mapMessageOfChoice } from './texts.ts'

/** Maps what a choice contains besides the pieces of text. */
function mapRestOfChoice(choice: unknown, map: TextsMap): unknown {
  if (!isObject(choice)) return mapResponseField({ choice }, 'choice', map)
  const { message, ...others } = choice
  // Before the choice is complete, a match in a message that is repeated so far may be undecided.
  const known = isObject(message) && !isFinished(choice) ? others : choice
  return mapEntries(known, (name, value) => {
    if (name === 'text' && typeof value === 'string') return value
    if (name === 'delta' && isObject(value)) return mapDelta(value, { ...keepPieces, whole: map })
    if (name === 'message' && isObject(value)) return mapMessageOfChoice(value, map)
    return mapResponseField(choice, name, map)
  })
}

function mapChoices(event: JsonObject, map: (choice: unknown) => unknown): JsonObject {
  if (!Array.isArray(event.choices)) return event
  return withFields(event, {
    choices: mapList(event.choices, map),
  })
}

/** Maps the pieces of text in a choice. Some vendors send `text` instead of a delta. */
function mapPieces(choice: unknown, map: DeltaMap): unknown {
  if (!isObject(choice)) return choice
  return mapEntries(choice, (name, value) => {
    if (name === 'text' && typeof value === 'string' && value !== '') return map.piece(value, name)
    return name === 'delta' && isObject(value) ? mapDelta(value, map) : value
  })
}

/** Returns the pieces of text in a choice. */
function piecesOf(choice: JsonObject): Piece[] {
  const index = numberAt(choice, 'index') ?? 0
  const pieces: Piece[] = []
  mapPieces(choice, {
    piece: (text, field) => {
      const run = `${index}/${field}`
      pieces.push({ run, part: run, text })
      return text
    },
    aside: (text, path) => {
      pieces.push(asideOf(`${index}/`, path, text))
      return text
    },
    whole: keepPieces.whole,
  })
  return pieces
}

export const readCompletionsEvent: ReadEvent = (event) => {
  const choices = listAt(event, 'choices')
  const pieces = choices.flatMap((choice) => (isObject(choice) ? piecesOf(choice) : []))
  const put = (texts: readonly string[], written: JsonObject) => {
    let at = 0
    const next = () => texts[at++] ?? ''
    const map = { piece: next, aside: next, whole: keepPieces.whole }
    return mapChoices(written, (choice) => mapPieces(choice, map))
  }
  const repeat = (map: TextsMap) => {
    const mapped = mapChoices(event, (choice) => mapRestOfChoice(choice, map))
    return mapRestOfEvent(mapped, map, Array.isArray(event.choices) ? 'choices' : '')
  }
  return { pieces, put, repeat }
}

/** Finds reasoning, and the arguments of calls. */
export const optInOfCompletions = (event: JsonObject): readonly OptInPiece[] =>
  listAt(event, 'choices').flatMap((choice, at) => {
    const delta = objectAt(choice, 'delta') ?? {}
    const prefix = `${numberAt(choice, 'index') ?? 0}/`
    const base = ['choices', at, 'delta']
    const reasoning = Object.keys(delta)
      .filter((name) => reasoningFields.has(name))
      .flatMap((name) => textPaths(delta[name], [...base, name]))
      .map((path) => ({ place: 'Reasoning', part: prefix + JSON.stringify(path), path }) as const)
    const call = textPaths(field(objectAt(delta, 'function_call'), 'arguments'), [
      ...[...base, 'function_call', 'arguments'],
    ]).map((path) => ({ place: 'ToolInput', part: `${prefix}call`, path }) as const)
    const calls = listAt(delta, 'tool_calls').flatMap((one, index) => {
      const part = `${prefix}calls/${numberAt(one, 'index') ?? index}`
      return callInputs.flatMap(([kind, name]) => {
        const path = [...base, 'tool_calls', index, kind, name]
        const isText = stringAt(objectAt(one, kind), name) !== undefined
        return isText ? [{ place: 'ToolInput', part, path } as const] : []
      })
    })
    return [...reasoning, ...call, ...calls]
  })

const callInputs = [
  ['function', 'arguments'],
  ['custom', 'input'],
] as const
