import { isObject, type JsonObject, listAt } from '../../json/json.ts'
import { otherSlots, type ResponseSlots, responseSlot } from '../../mask/slot.ts'

const isMessage = ({ type }: JsonObject): boolean => type === 'message'

/** The texts of items as webhooks see them. */
export const responsesSlots: ResponseSlots = {
  messages: (body, scope) =>
    listAt(body, 'output')
      .filter(isObject)
      .filter(isMessage)
      .map((item) => responseSlot(item, 'content', undefined, scope)),
  besideMessage: (item, scope) =>
    otherSlots(item, isObject(item) && isMessage(item) ? ['content'] : [], undefined, scope),
}
