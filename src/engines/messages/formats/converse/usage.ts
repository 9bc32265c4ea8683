/** Token counts of responses. */
import type { Usage } from '../../chat.ts'
import { countAt, usageOf } from '../../common/usage.ts'
import { field, listAt, objectAt, stringAt } from '../../json/json.ts'

/** Reads the usage of a response, or of the last event of a stream, with the service that it names. */
export function readUsageOfConverse(body: unknown): Usage | undefined {
  const usage = readConverseUsage(field(body, 'usage'))
  const service = stringAt(objectAt(body, 'serviceTier'), 'type')
  return usage === undefined || service === undefined ? usage : { ...usage, service }
}

export function readConverseUsage(usage: unknown): Usage | undefined {
  const counts = {
    input: countAt(usage, 'inputTokens'),
    output: countAt(usage, 'outputTokens'),
    cacheRead: countAt(usage, 'cacheReadInputTokens'),
    cacheWrite: countAt(usage, 'cacheWriteInputTokens'),
    cacheWrite1h: writtenForAnHour(usage),
  }
  return usageOf(counts, 'separate')
}

function writtenForAnHour(usage: unknown): number | undefined {
  const parts = listAt(usage, 'cacheDetails').filter((part) => stringAt(part, 'ttl') === '1h')
  return parts.reduce<number>((sum, part) => sum + (countAt(part, 'inputTokens') ?? 0), 0)
}
