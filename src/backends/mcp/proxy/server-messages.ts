/** What servers send besides the answer to a request: what of it a client gets, and in which form. */

import type { McpItem } from '../../../exchange/mcp.ts'
import { codes, errorText, resultText } from '../answers.ts'
import { isServerRequest, mayAskClient } from '../client-capabilities.ts'
import { member, textOf } from '../json/scan.ts'
import { type Keeps, mergedResult, partOf, withoutItems } from '../lists.ts'
import {
  type McpMessage,
  type McpNotification,
  type McpRequest,
  type McpResponse,
  readMessage,
} from '../message.ts'
import { type ListMethod, listMethods } from '../methods.ts'
import { clientMessage, clientResult } from '../results.ts'
import { toFailure } from './failure.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { type ClientSession, SessionEnded, tell } from './target-session.ts'

/** The text that the client gets; undefined if the message is not for it. */
export function messageForClient(
  session: ClientSession,
  entry: McpTargetEntry,
  message: McpMessage,
): string | undefined {
  const { exchange } = session
  const isOnly = exchange.backend.targets.length === 1
  switch (message.kind) {
    case 'request':
      if (answeredHere(session, entry, message)) return undefined
      break
    case 'notification':
      if (!isForClient(exchange, entry, message)) return undefined
      break
    case 'response':
      return answerForClient(exchange, entry, message, isOnly)
  }
  return isOnly ? message.text : clientMessage(entry.target.name, message)
}

/**
 * Answers a request for which there is no client: one that did not declare the capability, or one that
 * has no session and so no way to answer. Without an answer the server would wait.
 */
function answeredHere(session: ClientSession, entry: McpTargetEntry, request: McpRequest): boolean {
  const { isStateless } = session.exchange.backend
  if (!isStateless && mayAskClient(session.state.hello, request)) return false
  const text =
    request.method === 'ping'
      ? resultText(request.id, '{}')
      : errorText(request.id, codes.methodNotFound, 'The client does not support this request')
  session
    .use(entry, (transport) => tell(transport, text))
    .catch((thrown: unknown) => {
      // The server has gone meanwhile, and waits no more.
      if (!(thrown instanceof SessionEnded)) toFailure(thrown)
    })
  return true
}

function isForClient(
  exchange: McpExchange,
  entry: McpTargetEntry,
  { method, text, params }: McpNotification,
): boolean {
  if (isServerRequest(method)) return false
  if (method !== 'notifications/resources/updated') return true
  const uri = textOf(text, member(params, 'uri'))
  const keeps = keptItems(exchange, entry, { type: 'resource', name: method })
  return keeps === undefined || (uri !== undefined && keeps(uri))
}

/**
 * An answer on a stream that was resumed. The request is not known any more; what it has asked for
 * shows in the result.
 */
function answerForClient(
  exchange: McpExchange,
  entry: McpTargetEntry,
  response: McpResponse,
  isOnly: boolean,
): string {
  let shown = response
  // Members of these are results of calls, reads and prompts, which are judged when they are asked for.
  const isUse = ['content', 'contents', 'messages'].some((name) => member(response.result, name))
  for (const method of listMethods) {
    if (isUse || member(shown.result, method.member) === undefined) continue
    const keeps = keptItems(exchange, entry, method)
    if (!isOnly && shown.id !== undefined) {
      const part = partOf(entry.target.name, method, shown, true, keeps ?? (() => true))
      return resultText(shown.id, mergedResult(method, [part], []))
    }
    if (keeps === undefined) continue
    const rest = readMessage(withoutItems(method, shown, keeps))
    if (rest.kind === 'response') shown = rest
  }
  return isOnly ? shown.text : clientResult(entry.target.name, shown)
}

/** Which items of a target the client may see; undefined if no rules hold for the target. */
export function keptItems(
  exchange: McpExchange,
  entry: McpTargetEntry,
  { type, name: method }: Pick<ListMethod, 'type' | 'name'>,
): Keeps | undefined {
  const rules = exchange.rulesOf(entry)
  if (rules === undefined) return undefined
  return (name) => {
    const item: McpItem = { type, target: entry.target.name, name }
    exchange.show(method, item)
    return rules.allows(exchange.client, { method, item, isListed: true })
  }
}
