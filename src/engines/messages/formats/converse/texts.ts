/** The texts in whole responses, and the calls of tools there. */
import { type OutputCall, textAt } from '../../common/output-call.ts'
import { field, isObject, type JsonObject, listAt, objectAt } from '../../json/json.ts'
import { otherSlots, type ResponseSlots, responseSlot } from '../../mask/slot.ts'
import {
  mapMember,
  mapParts,
  type Reading,
  type ResponseTexts,
  responseRules,
} from '../../mask/texts.ts'
import { mapEntries } from '../../mask/texts-map.ts'
import { messageOf, converseTexts as own } from './own-texts.ts'

export const outputTexts: ResponseTexts = {
  field: 'output',
  map: (output, reading) =>
    isObject(output)
      ? mapEntries(output, (name, value) =>
          name === 'message' && isObject(value)
            ? mapMessage(value, reading)
            : mapMember(output, undefined, name, value, reading),
        )
      : mapMember({ output }, undefined, 'output', output, reading),
}

const mapMessage = (message: JsonObject, reading: Reading): JsonObject =>
  mapEntries(message, (name, value) =>
    name === 'content' && Array.isArray(value)
      ? mapParts(value, name, reading, responseRules)
      : mapMember(message, undefined, name, value, reading),
  )

export const outputSlots: ResponseSlots = {
  messages: (body, scope) => {
    const message = messageOf(body)
    if (message === undefined) return []
    const beside = otherSlots(field(body, 'output'), ['message'], own, scope)
    return [
      responseSlot(message, 'content', own, scope),
      ...otherSlots(message, ['content'], own, scope),
      ...beside,
    ]
  },
}

export const callsInOutput = (body: JsonObject): OutputCall[] =>
  listAt(messageOf(body), 'content').flatMap((block) => {
    const call = objectAt(block, 'toolUse')
    if (call === undefined) return []
    const input = JSON.stringify(field(call, 'input') ?? {})
    return [{ id: textAt(call, 'toolUseId'), name: textAt(call, 'name'), arguments: input }]
  })
