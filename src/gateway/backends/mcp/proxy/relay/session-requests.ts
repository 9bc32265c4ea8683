/** Requests about a whole session, which several servers have. */
import { member, textOf } from '../../json/node.ts'
import { codes, resultText } from '../../json-rpc.ts'
import type { McpRequest } from '../../message.ts'
import { refusal } from '../calls/located-item.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import type { TargetSender } from './target-sender.ts'

/** Sends a request for log messages to all servers that have them. Succeeds if at least one server does. */
export async function askEverywhere(
  upstreams: Upstreams,
  sender: TargetSender,
  request: McpRequest,
): Promise<ClientResponse> {
  const able = upstreams.exchange.backend.targets.filter(({ target }) => {
    return upstreams.can(target.name)?.includes('logging') ?? true
  })
  const all = await Promise.allSettled(able.map((entry) => sender.sendJoined(entry, request)))
  const done = all.filter(
    (one) => one.status === 'fulfilled' && one.value.response.error === undefined,
  )
  if (done.length > 0) return { text: resultText(request.id, '{}') }
  const first = all.find((one) => one.status === 'fulfilled')
  if (first !== undefined) return { text: first.value.response.text }
  return refusal(request, codes.internal, 'no server can do that')
}

/** Keeps the log level of a legacy client, for sessions at servers that are begun later. */
export function keepLevel({ sessionId, shared }: McpExchange, { text, params }: McpRequest): void {
  const logLevel = textOf(text, member(params, 'level'))
  if (sessionId !== undefined && logLevel !== undefined) {
    shared.settings.change(sessionId, { logLevel })
  }
}

/** Keeps what a legacy client subscribes to, for sessions at the server that are begun later. */
export function keepSubscription(
  { sessionId, shared }: McpExchange,
  method: string,
  { target }: McpTargetEntry,
  uri: string,
): void {
  const isSubscribed = method === 'resources/subscribe'
  if (sessionId === undefined || (!isSubscribed && method !== 'resources/unsubscribe')) return
  shared.settings.change(sessionId, { target: target.name, uri, isSubscribed })
}
