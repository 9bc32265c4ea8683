/** Applies the guards of a target to its messages. */
import type { PlacedGuard } from '../../../ai/policy/bind-guard.ts'
import {
  type McpMessage,
  type McpRequest,
  MessageRefusal,
  readMessage,
  readResponse,
} from '../../message.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import { TargetFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { ReceivedResponse } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { refusedCall } from './call-refusal.ts'
import { placeOfMethod, responseTexts, serverTexts, withTexts } from './guarded-texts.ts'
import { maskNow, runGuards } from './run-guards.ts'

/** Returns the response after the guards, or a refusal. `note` gets their findings. */
export async function guardResponse(
  { exchange, era }: Upstreams,
  entry: McpTargetEntry,
  guards: readonly PlacedGuard[],
  request: McpRequest,
  received: ReceivedResponse,
  note: (text: string) => void,
): Promise<ReceivedResponse | ClientResponse> {
  const groups = guards.length === 0 ? [] : responseTexts(received.response)
  if (groups.length === 0) return received
  const place = placeOfMethod(request.method) ?? 'Results'
  const outcome = await runGuards(guards, groups, 'response', exchange.client, place)
  for (const finding of outcome.findings) note(finding)
  for (const check of outcome.checks) exchange.noteCheck(entry, check)
  if (outcome.refusal !== undefined) {
    exchange.noteRefusedBy('guard')
    return refusedCall(request, era, outcome.refusal)
  }
  if (outcome.texts === undefined) return received
  return withResponse(received, withTexts(received.response, groups, outcome.texts))
}

/** Replaces the text of a response. */
export function withResponse(received: ReceivedResponse, text: string): ReceivedResponse {
  const response = orRefused(() => readResponse(text))
  if (response === undefined) throw new TargetFailure('the response cannot be guarded')
  return { ...received, response }
}

/** Parses a message after the guards. If masking made two keys equal, the message cannot be sent. */
export function orRefused<Message>(read: () => Message | undefined): Message | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof MessageRefusal) return undefined
    throw error
  }
}

/** Notifications with texts that only matter to people, so that they can be withheld. */
const withheld: ReadonlySet<string> = new Set([
  'notifications/message',
  'notifications/progress',
  'notifications/tasks/status',
])

/**
 * Guards a request or notification that a server sends, which the client must get at once. Only masks apply: where a
 * service guards results, notifications with texts are withheld. Undefined if the client must not get the message.
 */
export function guardServerMessage(
  exchange: McpExchange,
  entry: McpTargetEntry,
  message: McpMessage,
): McpMessage | undefined {
  const policy = exchange.callPolicyOf(entry)
  if (policy === undefined || message.kind === 'response') return message
  if (policy.withholdsProgress && withheld.has(message.method)) return undefined
  const guards = policy.responseGuards
  if (guards.length === 0) return message
  const groups = serverTexts(message)
  const texts = maskNow(guards, groups)
  if (texts === undefined) return message
  return orRefused(() => readMessage(withTexts(message, groups, texts)))
}
