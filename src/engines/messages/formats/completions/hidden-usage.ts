import type { StreamEvent } from '../../chat.ts'
import { type JsonObject, listAt } from '../../json/json.ts'

/** Removes usage that the client did not ask for: the event with it, and the empty field in other events. */
export function withoutUsage(
  event: StreamEvent,
  parsed: JsonObject,
  corrected: JsonObject,
): readonly StreamEvent[] {
  if (!('usage' in parsed) && corrected === parsed) return [event]
  if (listAt(parsed, 'choices').length === 0 && parsed.usage != null) return []
  const { usage: _usage, ...rest } = corrected
  return [{ event: event.event, data: JSON.stringify(rest) }]
}
