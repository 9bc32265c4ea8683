/** Where requests and responses have texts. Names of members may be in camel case or in snake case. */
import { stringAt } from '../../json/json.ts'
import { textOfType, urlText } from '../../mask/encoded-texts.ts'
import { defineOwnTexts, type MemberRule } from '../../mask/text-fields.ts'
import { inCamelCase } from './names.ts'

const rules: Readonly<Record<string, readonly string[]>> = {
  setting: [
    ...['args', 'generationConfig', 'toolConfig', 'safetySettings', 'cachedContent'],
    ...['usageMetadata', 'safetyRatings', 'promptTokensDetails', 'cacheTokensDetails'],
  ],
  label: [
    ...['mimeType', 'fileUri', 'thoughtSignature', 'finishReason', 'modelVersion', 'responseId'],
    ...['taskType', 'createTime', 'blockReason'],
  ],
  // Results of functions are objects of their own.
  data: ['response'],
  content: ['parts'],
}

const inSnakeCase = (name: string): string => name.replace(/[A-Z]/g, '_$&').toLowerCase()

const members = Object.entries(rules).flatMap(([rule, names]) =>
  names.flatMap((name) =>
    [name, inSnakeCase(name)].map((one) => [one, rule as MemberRule] as const),
  ),
)

export const generateContentTexts = defineOwnTexts({
  members: new Map(members),
  messages: 'contents',
  system: ['systemInstruction', 'system_instruction'],
  isReasoning: ({ thought }) => thought === true,
  encoded(holder, name) {
    if (inCamelCase(name) === 'fileUri') return urlText(stringAt(holder, name) ?? '', undefined)
    if (name !== 'data') return undefined
    const type = stringAt(holder, 'mimeType') ?? stringAt(holder, 'mime_type')
    if (type === undefined) return undefined
    return textOfType(type, { prefix: '', data: stringAt(holder, name) ?? '' })
  },
})
