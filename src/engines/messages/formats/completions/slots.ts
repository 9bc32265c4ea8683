/** The texts of choices as webhooks see them. */
import { isObject, type JsonObject, listAt, objectAt } from '../../json/json.ts'
import type { Places } from '../../mask/places.ts'
import { otherSlots, type ResponseSlots, responseSlot, type Slot } from '../../mask/slot.ts'

export const completionsSlots: ResponseSlots = {
  messages: (body, scope) => listAt(body, 'choices').map((choice) => choiceSlot(choice, scope)),
  besideMessage: otherSlotsOfChoice,
}

/** Finds the text of a choice: its content, otherwise its refusal or the transcript of its audio. */
function placeOfChoice(choice: unknown): { readonly holder: JsonObject; readonly name: string } {
  const message = objectAt(choice, 'message')
  if (isObject(choice) && message === undefined) return { holder: choice, name: 'text' }
  if (message?.content != null) return { holder: message, name: 'content' }
  if (objectAt(message, 'audio') !== undefined && message?.refusal == null) {
    return { holder: message ?? {}, name: 'audio' }
  }
  return { holder: message ?? {}, name: 'refusal' }
}

function choiceSlot(choice: unknown, scope: Places | undefined): Slot {
  const { holder, name } = placeOfChoice(choice)
  return responseSlot(holder, name, undefined, scope)
}

function otherSlotsOfChoice(choice: unknown, scope: Places | undefined): Slot[] {
  const { holder, name } = placeOfChoice(choice)
  if (holder === choice) return otherSlots(choice, [name], undefined, scope)
  return [
    ...otherSlots(holder, [name], undefined, scope),
    ...otherSlots(choice, ['message'], undefined, scope),
  ]
}
