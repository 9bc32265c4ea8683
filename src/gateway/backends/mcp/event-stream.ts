/** Server-sent events of MCP: one message, an id to resume from, and a reconnection time. */
import type { SseEvent } from '../../../engines/sse/reader.ts'
import { writePairs } from './naming.ts'

/** An event without a type is a `message`. An event without data has only an id or a reconnection time. */
export type McpEvent = SseEvent

/** The id and the reconnection time of an event. */
export type EventFields = Pick<McpEvent, 'id' | 'retry'>

/** Writes an event. A message of several lines is split into several data lines. */
export function eventText({ type, data, id, retry }: Partial<McpEvent>): string {
  let text = data === undefined ? '' : `event: ${type || 'message'}\n`
  if (id !== undefined) text += `id: ${id}\n`
  if (retry !== undefined) text += `retry: ${retry}\n`
  for (const line of data?.split(/\r\n|\r|\n/) ?? []) text += `data: ${line}\n`
  return `${text}\n`
}

/** Key of the entry in event ids that has the id of the request. Names of targets have no colon. */
export const requestKey = ':'

/**
 * Adds the name of the target to an event id, so that the client resumes the stream of the same target, and the id
 * of the request (JSON), so that the gateway can respond to the request if the stream cannot be resumed.
 */
export function clientEventFields(
  target: string,
  request: string,
  eventFields: EventFields | undefined,
): EventFields | undefined {
  if (eventFields?.id === undefined) return eventFields
  const pairs = [[target, eventFields.id] as const, [requestKey, request] as const]
  return { ...eventFields, id: writePairs(pairs) }
}
