/** Fields of this format alone, which clients and settings may put into any format by its names. */
import { compact, field, type JsonObject, objectAt, stringAt } from '../../json.ts'

export function readGenerateContentFields(body: unknown): JsonObject | undefined {
  const own = compact({
    safetySettings: field(body, 'safetySettings'),
    cachedContent: stringAt(body, 'cachedContent'),
    labels: objectAt(body, 'labels'),
  })
  return Object.keys(own).length === 0 ? undefined : own
}
