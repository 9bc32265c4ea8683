/** What the gateway changes in requests and streams that are not translated. */
import type { ModelFacts } from '../../catalog/facts.ts'
import type { StreamEvent } from '../../chat.ts'
import { type JsonObject, listAt, objectAt } from '../../json/json.ts'

/** Returns true if the client asked for the usage of a stream; otherwise the gateway removes the usage. */
export const asksForUsage = (body: JsonObject): boolean =>
  objectAt(body, 'stream_options')?.include_usage === true

/** Asks for the usage of streams, and renames `max_tokens` for models that require the new name. */
export function complete(body: JsonObject, facts: ModelFacts): JsonObject {
  const needsUsage = lacksUsage(body)
  const renames = renamesLimit(body, facts)
  const { max_tokens: limit, ...rest } = body
  return {
    ...(renames ? { ...rest, max_completion_tokens: body.max_completion_tokens ?? limit } : body),
    ...(needsUsage && {
      stream_options: { ...objectAt(body, 'stream_options'), include_usage: true },
    }),
  }
}

/** Returns true if `complete` changes nothing, for a body with these fields and maybe others. */
export const isComplete = (fields: JsonObject, facts: ModelFacts): boolean =>
  !(lacksUsage(fields) || renamesLimit(fields, facts))

export const lacksUsage = (body: JsonObject): boolean => body.stream === true && !asksForUsage(body)

/** Models of which nothing is known may be older ones, which know only `max_tokens`. */
const renamesLimit = (body: JsonObject, { limitField, basis }: ModelFacts): boolean =>
  body.max_tokens !== undefined && limitField === 'max_completion_tokens' && basis !== 'unknown'

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
