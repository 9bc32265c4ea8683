/** Server-sent events as MCP uses them: one message, an id to resume from, a time to reconnect. */
import type { SseEvent } from '../../base/sse-reader.ts'

/** Without a type it is a `message`; without data it only has an id or a time. */
export type McpEvent = SseEvent

/** The text of an event; messages are on one line already, or are split as the format wants. */
export function eventText({ type, data, id, retry }: Partial<McpEvent>): string {
  let text = data === undefined ? '' : `event: ${type || 'message'}\n`
  if (id !== undefined) text += `id: ${id}\n`
  if (retry !== undefined) text += `retry: ${retry}\n`
  for (const line of data?.split(/\r\n|\r|\n/) ?? []) text += `data: ${line}\n`
  return `${text}\n`
}
