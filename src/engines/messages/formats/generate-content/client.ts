/** GenerateContent as a format of clients. */
import type { AddedMessage } from '../../common/added-messages.ts'
import type { ChatFormat } from '../../format.ts'
import { isObjects, type JsonObject, listAt, needList, objectAt } from '../../json/json.ts'
import type { RoleText } from '../../mask/slot.ts'
import { generateContentEvents, modelField, usageField } from './events.ts'
import { generateContentPlaces } from './places.ts'
import { readGenerateContentRequest } from './read-request.ts'
import { generateContentRequests } from './requests.ts'
import { callsInCandidates, candidateSlots, candidateTexts } from './texts.ts'
import { readGenerateContentUsage } from './usage.ts'
import { writeGenerateContent } from './write-response.ts'
import { GenerateContentWriter } from './writer.ts'

const isOfSystem = ({ role }: RoleText): boolean => role === 'system' || role === 'developer'

const partOf = ({ content }: RoleText): JsonObject => ({ text: content })

const contentOf = (message: RoleText): JsonObject => ({
  role: message.role === 'assistant' ? 'model' : 'user',
  parts: [partOf(message)],
})

/** The names under which a request may have the prompt of the system. */
const systemNames = ['systemInstruction', 'system_instruction'] as const

function withMessages(settings: JsonObject, messages: readonly RoleText[]): JsonObject {
  const system = messages.filter(isOfSystem).map(partOf)
  const contents = messages.filter((message) => !isOfSystem(message)).map(contentOf)
  return {
    ...settings,
    ...(system.length > 0 && { systemInstruction: { parts: system } }),
    contents,
  }
}

function enrich(
  body: JsonObject,
  before: readonly AddedMessage[],
  after: readonly AddedMessage[],
): JsonObject {
  const plain = (all: readonly AddedMessage[]) =>
    all.filter((message) => !isOfSystem(message)).map(contentOf)
  const contents = [...plain(before), ...needList(body, 'contents'), ...plain(after)]
  const [first, last] = [before, after].map((all) => all.filter(isOfSystem).map(partOf))
  if (!first?.length && !last?.length) return { ...body, contents }
  const name = systemNames.find((one) => body[one] !== undefined) ?? 'systemInstruction'
  const system = objectAt(body, name)
  const parts = [...(first ?? []), ...listAt(system, 'parts'), ...(last ?? [])]
  return { ...body, contents, [name]: { ...system, parts } }
}

export const generateContentClient: ChatFormat<'GenerateContent'> = {
  ...generateContentRequests,
  name: 'GenerateContent',
  operation: 'chat',
  endings: [':generatecontent', ':streamgeneratecontent'],
  parameterFields: ['generationConfig', 'generation_config'],
  modelField,
  usageField,
  readUsage: readGenerateContentUsage,
  withMessages,
  canStream: true,
  responseFields: ['candidates', 'promptFeedback'],
  hasResponse: ({ candidates, promptFeedback }) =>
    isObjects(candidates) || promptFeedback !== undefined,
  readRequest: readGenerateContentRequest,
  writeResponse: writeGenerateContent,
  writer: (context) => new GenerateContentWriter(context),
  enrich,
  places: generateContentPlaces,
  texts: candidateTexts,
  slots: candidateSlots,
  callsIn: callsInCandidates,
  events: generateContentEvents,
}
