/** What a session of vendorA's realtime interface says of itself, event by event. */
import type { Usage } from '../chat.ts'
import { WebSocketTexts } from '../formats/websocket.ts'
import { numberAt, objectAt, parseJson, stringAt } from '../json.ts'

/** Tokens of one response (`response.done`); undefined for every other event. */
function usageOf(text: string): Usage | undefined {
  if (!text.includes('"response.done"')) return undefined
  const event = parseJson(text)
  if (stringAt(event, 'type') !== 'response.done') return undefined
  const usage = objectAt(objectAt(event, 'response'), 'usage')
  const input = numberAt(usage, 'input_tokens')
  const output = numberAt(usage, 'output_tokens')
  if (input === undefined && output === undefined) return undefined
  const cacheRead = numberAt(objectAt(usage, 'input_token_details'), 'cached_tokens')
  return {
    input: input ?? 0,
    uncachedInput: Math.max(0, (input ?? 0) - (cacheRead ?? 0)),
    output: output ?? 0,
    ...(cacheRead !== undefined && { cacheRead }),
  }
}

/** Every response of a session is paid for: their tokens add up. */
export function sumOfUsage(a: Usage | undefined, b: Usage): Usage {
  if (a === undefined) return b
  const cacheRead = (a.cacheRead ?? 0) + (b.cacheRead ?? 0)
  const hasCache = a.cacheRead !== undefined || b.cacheRead !== undefined
  return {
    input: a.input + b.input,
    uncachedInput: a.uncachedInput + b.uncachedInput,
    output: a.output + b.output,
    ...(hasCache && { cacheRead }),
  }
}

/** Reads what the provider sends, and changes nothing of it. */
export function realtimeReader(
  onUsage: (usage: Usage) => void,
  limit: number,
): (bytes: Buffer, start: number, end: number) => void {
  const texts = new WebSocketTexts((text) => {
    const usage = usageOf(text)
    if (usage !== undefined) onUsage(usage)
  }, limit)
  return (bytes, start, end) => texts.push(bytes, start, end)
}
