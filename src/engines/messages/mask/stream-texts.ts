/** Reads the events of a streamed response for guards. */
import type { ChatFormat } from '../format.ts'
import { isObject, type JsonObject, parseJson } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import { mapErrorResponse } from './error-texts.ts'
import { type EventTexts, everything } from './event-texts.ts'
import { needEventForm } from './message-forms.ts'

/**
 * Parses an event of a guarded response; undefined if it is empty. An event that cannot be read could
 * contain anything, so it is rejected. @throws LlmError 502
 */
export function readGuarded(data: string): JsonObject | undefined {
  const parsed = parseJson(data)
  if (isObject(parsed)) return parsed
  if (data === '[DONE]' || data.trim() === '') return undefined
  throw new LlmError(502, 'an event of the response is not JSON')
}

/** The names that events may have besides their type. */
const plainNames = new Set<unknown>(['message', 'error', 'ping', 'done'])

/** Returns the name of an event for the client; undefined if the name may be a text. */
export const nameOfEvent = (name: string | undefined, event: JsonObject): string | undefined =>
  name === event.type || plainNames.has(name) ? name : undefined

/**
 * Reads an event that guards judge: an error has a text in each of its strings, and anything else than an event of
 * the format is refused. @throws LlmError 502
 */
export const readGuardedEvent = (format: ChatFormat, event: JsonObject): EventTexts =>
  needEventForm(event, format) === 'event'
    ? format.events.read(event)
    : { completes: everything, repeat: (map) => mapErrorResponse(event, map), isWhole: true }
