/** Reads usage and other details from responses that are not translated. */
import type { Usage } from '../chat.ts'
import { field, type JsonObject, objectAt, stringAt } from '../json/json.ts'

/** Details of a response, as far as they are known. */
export interface ResponseDetails {
  readonly model?: string
  readonly usage?: Usage
  /** The price tier, such as `default`. */
  readonly serviceTier?: string
  /** The result of a token count. */
  readonly countTokens?: number
}

/** Where a format has the details. */
export interface DetailFacts {
  /** Reads the field with the usage of a whole response. */
  readUsage(usage: unknown): Usage | undefined
  /** The fields with the usage and the model, if they are not `usage` and `model`. */
  readonly usageField?: string
  readonly modelField?: string
  /** Reads the calls of tools in a whole response that the provider bills. */
  readCalls?(body: unknown): Usage['calls']
  /** Types of items of `output` that `readCalls` counts. */
  readonly billedItems?: readonly string[]
  /** Reads the result of a token count. */
  readCount?(body: unknown): number | undefined
}

/** Reads the details in the events of one stream. */
export interface EventDetails {
  read(event: unknown): ResponseDetails
}

/** Reads the details in a whole response in the client's format. */
export function detailsOfResponse(format: DetailFacts, body: unknown): ResponseDetails {
  const details: { -readonly [Name in keyof ResponseDetails]: ResponseDetails[Name] } = {}
  const model = stringAt(body, format.modelField ?? 'model')
  const usage = format.readUsage(field(body, format.usageField ?? 'usage'))
  const serviceTier =
    stringAt(body, 'service_tier') ??
    stringAt(objectAt(body, 'usage'), 'service_tier') ??
    stringAt(objectAt(body, 'serviceTier'), 'type')
  const countTokens = format.readCount?.(body)
  if (model !== undefined) details.model = model
  if (usage !== undefined) {
    const calls = format.readCalls?.(body)
    details.usage = calls === undefined ? usage : { ...usage, calls }
  }
  if (serviceTier !== undefined) details.serviceTier = serviceTier
  if (countTokens !== undefined) details.countTokens = countTokens
  return details
}

/** Returns the reader of streams in which each event has all details in one place. */
export const detailsIn = (
  format: DetailFacts,
  placeOf: (event: unknown) => unknown,
): EventDetails => ({ read: (event) => detailsOfResponse(format, placeOf(event)) })

/** Returns a response with another name of its model; the same object if it has none. */
export const withModel = (response: JsonObject, model: string, name = 'model'): JsonObject =>
  stringAt(response, name) === undefined ? response : { ...response, [name]: model }

/** Does the same for a response in a member of an event. */
export function withModelIn(event: JsonObject, member: string, model: string): JsonObject {
  const response = objectAt(event, member)
  const named = response && withModel(response, model)
  return named === response ? event : { ...event, [member]: named }
}
