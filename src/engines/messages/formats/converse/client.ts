/** Converse as a format of clients. */
import { type AddedMessage, textOrList } from '../../common/added-messages.ts'
import { idCheck, withId } from '../../common/history.ts'
import type { ChatFormat, ErrorForm } from '../../format.ts'
import { isObject, type JsonObject, mapField, needList } from '../../json/json.ts'
import type { RoleText } from '../../mask/slot.ts'
import { converseEvents } from './events.ts'
import { converseTexts, messageOf } from './own-texts.ts'
import { readModelPath } from './path.ts'
import { conversePlaces } from './places.ts'
import { readConverseRequest } from './read-request.ts'
import { readConverseError } from './response.ts'
import { converseShape } from './shape.ts'
import { callsInOutput, outputSlots, outputTexts } from './texts.ts'
import { readConverseUsage } from './usage.ts'
import { writeConverse, writeConverseError } from './write-response.ts'
import { ConverseEventWriter } from './writer.ts'

export const bedrockErrors: ErrorForm = {
  name: 'bedrock',
  read: readConverseError,
  write: writeConverseError,
}

/** Facts about all requests whose path has the model, as at vendor F. */
export const bedrockRequests = {
  inPath: readModelPath,
  withoutPath: ({ model: _model, stream: _stream, ...body }: JsonObject): JsonObject => body,
  errors: bedrockErrors,
  vendorHeaders: /^(?:x-amzn?-|amz-sdk-|x-bedrock-)/,
}

const isOfSystem = ({ role }: RoleText): boolean => role === 'system' || role === 'developer'
const blockOf = ({ content }: RoleText): JsonObject => ({ text: content })
const messageFor = (message: RoleText): JsonObject => ({
  role: message.role === 'assistant' ? 'assistant' : 'user',
  content: [blockOf(message)],
})

function withMessages(settings: JsonObject, messages: readonly RoleText[]): JsonObject {
  const system = messages.filter(isOfSystem).map(blockOf)
  const conversation = messages.filter((message) => !isOfSystem(message)).map(messageFor)
  return { ...settings, ...(system.length > 0 && { system }), messages: conversation }
}

function enrich(
  body: JsonObject,
  before: readonly AddedMessage[],
  after: readonly AddedMessage[],
): JsonObject {
  const plain = (all: readonly AddedMessage[]) =>
    all.filter((message) => !isOfSystem(message)).map(messageFor)
  const messages = [...plain(before), ...needList(body, 'messages'), ...plain(after)]
  const [first, last] = [before, after].map((all) => all.filter(isOfSystem).map(blockOf))
  if (!first?.length && !last?.length) return { ...body, messages }
  const own = textOrList(body, 'system', (text) => ({ text }))
  return { ...body, messages, system: [...(first ?? []), ...own, ...(last ?? [])] }
}

/** Maximum length of ids of calls. */
const maxIdLength = 64
const id = idCheck(maxIdLength)

/** Shortens the ids of calls that other vendors have made. */
function settleBlock(block: unknown): unknown {
  if (!isObject(block)) return block
  const settle = (value: unknown) =>
    isObject(value) ? withId(value, 'toolUseId', maxIdLength) : value
  return mapField(mapField(block, 'toolUse', settle), 'toolResult', settle)
}

const settleMessage = (message: unknown): unknown =>
  isObject(message) ? mapField(message, 'content', settleBlock) : message

export const converseClient: ChatFormat<'Converse'> = {
  ...bedrockRequests,
  name: 'Converse',
  operation: 'chat',
  endings: ['/converse', '/converse-stream'],
  framing: 'event-stream',
  ownTexts: converseTexts,
  shape: converseShape,
  history: {
    settle: (body) => mapField(body, 'messages', settleMessage),
    rules: { checked: { toolUseId: id } },
  },
  textMembers: ['messages', 'system'],
  limitMembers: [],
  decidedMembers: [],
  parameterFields: ['inferenceConfig', 'additionalModelRequestFields'],
  withMessages,
  canStream: true,
  responseFields: ['output'],
  hasResponse: (body) => messageOf(body) !== undefined,
  readUsage: readConverseUsage,
  readRequest: readConverseRequest,
  writeResponse: writeConverse,
  writer: () => new ConverseEventWriter(),
  enrich,
  places: conversePlaces,
  texts: outputTexts,
  slots: outputSlots,
  callsIn: callsInOutput,
  events: converseEvents,
}
