/** Where requests and responses have texts. */
import { isObject, type JsonObject, objectAt, stringAt } from '../../json/json.ts'
import { LlmError } from '../../llm-error.ts'
import { decoded, isReadable, isTextData } from '../../mask/encoded-texts.ts'
import type { Place } from '../../mask/places.ts'
import { defineOwnTexts, type MemberRule } from '../../mask/text-fields.ts'
import { mapMember, type Reading } from '../../mask/texts.ts'
import { mapEntries } from '../../mask/texts-map.ts'
import { isTextFormat } from './media.ts'

const namesByRule = {
  setting: [
    ...['toolUse', 'inferenceConfig', 'toolConfig', 'guardrailConfig', 'requestMetadata'],
    ...['performanceConfig', 'outputConfig', 'additionalModelResponseFieldPaths', 'cachePoint'],
    ...['metrics'],
  ],
  reasoning: ['reasoningContent'],
  label: ['toolUseId', 'stopReason', 'bytes', 'redactedContent', 'bucketOwner'],
  // Results of tools are objects of their own.
  data: ['json'],
} as const

const rules = Object.entries(namesByRule).flatMap(([rule, names]) =>
  names.map((name) => [name, rule as MemberRule] as const),
)

/** Maps a document: its name, which other vendors get as a text, and its bytes, if they are a text. */
function mapDocument(document: JsonObject, reading: Reading): JsonObject {
  const isText = hasTextBytes(document)
  return mapEntries(document, (name, value) => {
    if (name === 'name' && typeof value === 'string')
      return reading.map([value], false, placeInside(reading, 'FileNames'))[0] ?? ''
    if (name === 'source' && isText && isObject(value)) return mapSource(value, reading)
    return mapMember(document, 'document', name, value, reading)
  })
}

/** Documents in results of tools are results. */
const placeInside = ({ place }: Reading, inside: Place): Place =>
  place === 'ToolOutput' ? place : inside

/** Whether the bytes of a document are a text. Formats without texts are judged by their bytes, except for PDFs. */
function hasTextBytes(document: JsonObject): boolean {
  const format = stringAt(document, 'format') ?? ''
  if (isTextFormat(format)) return true
  const data = stringAt(objectAt(document, 'source'), 'bytes')
  return data !== undefined && format !== 'pdf' && isTextData(data)
}

function mapSource(source: JsonObject, reading: Reading): JsonObject {
  return mapEntries(source, (name, value) => {
    if (name !== 'bytes' || typeof value !== 'string') {
      return mapMember(source, 'source', name, value, reading)
    }
    const data = { prefix: '', data: value }
    if (!isReadable(data)) {
      throw new LlmError(400, 'bytes: a text document must be UTF-8 in plain base64 to be guarded')
    }
    const text = decoded(data)
    const mapped = reading.map([text], false, placeInside(reading, 'Documents'))[0] ?? ''
    return mapped === text ? value : Buffer.from(mapped).toString('base64')
  })
}

export const converseTexts = defineOwnTexts({
  members: new Map<string, MemberRule>([...rules, ['document', mapDocument]]),
  messages: 'messages',
  system: ['system'],
  isReasoning: () => false,
  encoded: () => undefined,
})

/** Returns the message of a response. */
export const messageOf = (body: unknown): JsonObject | undefined =>
  objectAt(objectAt(body, 'output'), 'message')
