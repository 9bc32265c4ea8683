/** The texts of choices as webhooks see them. */
import { isObject, type JsonObject, listAt, objectAt } from '../../json/json.ts'
import { otherSlots, type ResponseSlots, responseSlot, type Slot } from '../../mask/slot.ts'

export const completionsSlots: ResponseSlots = {
  messages: (body) => listAt(body, 'choices').map(choiceSlot),
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

function choiceSlot(choice: unknown): Slot {
  const { holder, name } = placeOfChoice(choice)
  return responseSlot(holder, name)
}

function otherSlotsOfChoice(choice: unknown): Slot[] {
  const { holder, name } = placeOfChoice(choice)
  if (holder === choice) return otherSlots(choice, [name])
  return [...otherSlots(holder, [name]), ...otherSlots(choice, ['message'])]
}
