/** Parameters of requests, which logs, spans and expressions show, in any format of clients. */

import { inCamelCase } from '../formats/generate-content/names.ts'
import { clientFormats } from '../formats/index.ts'
import { isObject, type JsonObject, numberAt } from '../json/json.ts'

const formats = Object.values(clientFormats)

/** The fields of each parameter, by its name in chat completions. The first field that is set counts. */
const fieldsOf = {
  temperature: ['temperature'],
  top_p: ['top_p'],
  frequency_penalty: ['frequency_penalty'],
  presence_penalty: ['presence_penalty'],
  seed: ['seed'],
  max_tokens: [...new Set(formats.flatMap(({ limitMembers }) => limitMembers))],
  encoding_format: ['encoding_format'],
  dimensions: ['dimensions'],
}

export type ParameterName = keyof typeof fieldsOf
export const parameterNames = Object.keys(fieldsOf) as readonly ParameterName[]

/** Fields with the number of answers that a request asks for. */
const answerFields = ['n', 'best_of']
const innerAnswerFields = ['candidateCount']

/** All fields of the body that this module reads. */
export const parameterFields: readonly string[] = [
  ...Object.values(fieldsOf).flat(),
  ...answerFields,
]

/** Other values are texts of the client, which logs do not contain. */
const encodings = new Map<unknown, string>([
  ['float', 'float'],
  ['base64', 'base64'],
])

/** Fields with the parameters of formats in which they are no fields of the body. */
const parameterObjects = [...new Set(formats.flatMap((format) => format.parameterFields ?? []))]
/** Names of parameters there, which may be in snake case, too. */
const innerFieldsOf: Readonly<Partial<Record<ParameterName, readonly string[]>>> = {
  temperature: ['temperature'],
  top_p: ['topP'],
  frequency_penalty: ['frequencyPenalty'],
  presence_penalty: ['presencePenalty'],
  seed: ['seed'],
  max_tokens: ['maxOutputTokens', 'maxTokens'],
}

/** Returns a parameter of a request; undefined if it is not set. */
export function parameterOf(request: JsonObject, name: ParameterName): string | number | undefined {
  if (name === 'encoding_format') return encodings.get(request.encoding_format)
  const value = firstNumber(request, fieldsOf[name])
  if (value !== undefined) return value
  const inner = innerFieldsOf[name]
  if (inner === undefined) return undefined
  for (const holder of parameterObjects) {
    const found = request[holder] === undefined ? undefined : firstNumber(request[holder], inner)
    if (found !== undefined) return found
  }
  return undefined
}

/** The most output tokens of an answer that any reader finds in a request; undefined if it has no limit. */
export const outputLimit = (request: JsonObject): number | undefined =>
  largest(request, fieldsOf.max_tokens, innerFieldsOf.max_tokens ?? [])

/** How many answers to each prompt a request asks for: at least 1. */
export const answersAsked = (request: JsonObject): number =>
  Math.max(1, largest(request, answerFields, innerAnswerFields) ?? 1)

function largest(
  request: JsonObject,
  fields: readonly string[],
  inner: readonly string[],
): number | undefined {
  let most: number | undefined
  const note = (value: unknown) => {
    const number = numberIn(value)
    if (number !== undefined && (most === undefined || number > most)) most = number
  }
  for (const name of fields) note(request[name])
  for (const holder of parameterObjects) {
    const members = request[holder]
    if (!isObject(members)) continue
    for (const name of Object.keys(members))
      if (inner.includes(inCamelCase(name))) note(members[name])
  }
  return most
}

/** Some servers read numbers that are written as texts. */
function numberIn(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

function firstNumber(holder: unknown, fields: readonly string[]): number | undefined {
  for (const field of fields) {
    const value = numberAt(holder, field)
    if (value !== undefined) return value
  }
  return undefined
}
