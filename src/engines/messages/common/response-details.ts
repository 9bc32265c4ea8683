/** Reads usage and other details from responses that are not translated. */
import type { Usage } from '../chat.ts'
import { field, objectAt, stringAt } from '../json/json.ts'

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
  /** Reads the field `usage` of a whole response. */
  readUsage(usage: unknown): Usage | undefined
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
  const model = stringAt(body, 'model')
  const usage = format.readUsage(field(body, 'usage'))
  const serviceTier =
    stringAt(body, 'service_tier') ?? stringAt(objectAt(body, 'usage'), 'service_tier')
  const countTokens = format.readCount?.(body)
  if (model !== undefined) details.model = model
  if (usage !== undefined) details.usage = usage
  if (serviceTier !== undefined) details.serviceTier = serviceTier
  if (countTokens !== undefined) details.countTokens = countTokens
  return details
}

/** Returns the reader of streams in which each event has all details in one place. */
export const detailsIn = (
  format: DetailFacts,
  placeOf: (event: unknown) => unknown,
): EventDetails => ({ read: (event) => detailsOfResponse(format, placeOf(event)) })
