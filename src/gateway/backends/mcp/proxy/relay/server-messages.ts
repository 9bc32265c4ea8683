/** Filters and rewrites the messages of servers, except the responses to requests. */
import { isServerRequest } from '../../eras/server-requests.ts'
import { member, textOf } from '../../json/node.ts'
import { codes, errorText, resultText } from '../../json-rpc.ts'
import { mergedResult, partOf, presentItems } from '../../lists.ts'
import {
  type McpMessage,
  type McpNotification,
  type McpRequest,
  type McpResponse,
  readResponse,
} from '../../message.ts'
import { listMethods } from '../../methods.ts'
import { clientMessage, clientResult } from '../../results.ts'
import { guardServerMessage } from '../calls/guard-messages.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { saysListChanged } from '../target/outdated-lists.ts'
import { toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { respondForClient } from '../target/transport.ts'
import { SessionEnded } from '../upstream/client-session.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { itemFilter } from './item-filter.ts'
import { listFilter } from './pinned-items.ts'

/** Returns the text for the client; undefined if the client must not get the message. */
export function messageForClient(
  upstreams: Upstreams,
  entry: McpTargetEntry,
  received: McpMessage,
): string | undefined {
  const { exchange, era } = upstreams
  const isOnly = exchange.only !== undefined
  const message = guardServerMessage(exchange, entry, received)
  if (message === undefined) return undefined
  switch (message.kind) {
    case 'request':
      if (era === 'modern' || isForGateway(upstreams, entry, message)) return undefined
      break
    case 'notification':
      noteListChange(exchange, entry, message.method)
      if (era === 'modern' && isUnrelated(message.method)) return undefined
      if (!isForClient(exchange, entry, message)) return undefined
      break
    case 'response':
      return responseForClient(exchange, entry, message, isOnly)
  }
  return isOnly ? message.text : clientMessage(entry.target.name, message)
}

/** Makes all threads read the lists of a target again, if the target says that one has changed. */
export function noteListChange(
  { shared, name }: McpExchange,
  { target }: McpTargetEntry,
  method: string,
): void {
  if (saysListChanged(method))
    shared.listNews.publish({ backend: name, target: target.name, method })
}

/** Responds to a server's request if the client cannot. Returns whether that is so. */
function isForGateway(upstreams: Upstreams, entry: McpTargetEntry, request: McpRequest): boolean {
  if (upstreams.mayAsk(request)) return false
  upstreams
    .use(entry, (transport) => respondForClient(transport, request))
    .catch((thrown: unknown) => {
      // If the session has ended, the server no longer waits for the response.
      if (!(thrown instanceof SessionEnded)) toFailure(thrown)
    })
  return true
}

/** Whether the notification is about no request. In the modern era only `subscriptions/listen` has such messages. */
const isUnrelated = (method: string): boolean =>
  method.endsWith('/list_changed') ||
  method === 'notifications/resources/updated' ||
  method === 'notifications/cancelled'

function isForClient(
  exchange: McpExchange,
  entry: McpTargetEntry,
  { method, text, params }: McpNotification,
): boolean {
  if (isServerRequest(method)) return false
  if (method !== 'notifications/resources/updated') return true
  const uri = textOf(text, member(params, 'uri'))
  const keeps = itemFilter(exchange, entry, { type: 'resource', name: method })
  return keeps === undefined || (uri !== undefined && keeps(uri))
}

/**
 * Rewrites a response on a resumed stream. The request is not known there, so the result shows the method.
 */
function responseForClient(
  exchange: McpExchange,
  entry: McpTargetEntry,
  response: McpResponse,
  isOnly: boolean,
): string {
  let shown = response
  if (response.id !== undefined && exchange.callPolicyOf(entry)?.changesResults === true) {
    const message = 'A response cannot be resumed where guards or limits of results apply'
    return errorText(response.id, codes.internal, message)
  }
  // Results of tool calls, reads and prompts were authorized with their request.
  const isUse = ['content', 'contents', 'messages'].some((name) => member(response.result, name))
  for (const method of listMethods) {
    if (isUse || member(shown.result, method.member) === undefined) continue
    const keeps = listFilter(exchange, entry, method, shown, true)
    const { view } = exchange
    const present = view.presenter(entry, method.member, keeps)
    if (!isOnly && shown.id !== undefined) {
      const part = partOf(entry.target.name, method, shown, present)
      return resultText(shown.id, mergedResult(method, [part], [], 'legacy'))
    }
    if (keeps === undefined && !view.isChanged(entry, method.member)) continue
    shown = readResponse(presentItems(method, shown, present)) ?? shown
  }
  return isOnly ? shown.text : clientResult(entry.target.name, shown)
}
