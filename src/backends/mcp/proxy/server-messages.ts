/** Filters and rewrites the messages of servers, except the responses to requests. */
import type { McpItem } from '../../../exchange/mcp.ts'
import { codes, errorText, resultText } from '../answers.ts'
import { isRecord } from '../initialize.ts'
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
import { itemText, type McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { toFailure } from './refusals.ts'
import { type ClientSession, notify, SessionEnded } from './target-session.ts'

/** Returns the text for the client; undefined if the client must not get the message. */
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
 * Answers a server's request if the client cannot, so that the server does not wait. Returns false if the
 * client can answer.
 */
function answeredHere(session: ClientSession, entry: McpTargetEntry, request: McpRequest): boolean {
  const { isStateless } = session.exchange.backend
  if (!isStateless && mayAskClient(session.state.hello, request)) return false
  const text =
    request.method === 'ping'
      ? resultText(request.id, '{}')
      : errorText(request.id, codes.methodNotFound, 'The client does not support this request')
  session
    .use(entry, (transport) => notify(transport, text))
    .catch((thrown: unknown) => {
      // If the session has ended, the server no longer waits for the answer.
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
 * Rewrites a response on a resumed stream. The request is not known there, so the result shows the method.
 */
function answerForClient(
  exchange: McpExchange,
  entry: McpTargetEntry,
  response: McpResponse,
  isOnly: boolean,
): string {
  let shown = response
  // Results of tool calls, reads and prompts were authorized with their request.
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

/** Returns a filter for the items that the client may see; undefined if the target has no rules. */
export function keptItems(
  exchange: McpExchange,
  entry: McpTargetEntry,
  { type, name: method }: Pick<ListMethod, 'type' | 'name'>,
): Keeps | undefined {
  const rules = exchange.rulesOf(entry)
  if (rules === undefined) return undefined
  let isNoted = false
  return (name) => {
    const item: McpItem = { type, target: entry.target.name, name }
    exchange.describeListed(method, item)
    const refusal = rules.refusal(exchange.client, { method, item, isListed: true })
    if (refusal === undefined) return true
    // One example per list, because lists may be long.
    if (!isNoted) {
      const text = `${method} hides ${itemText(item)}, for example: ${refusal}`
      exchange.noteRefusal(entry, text, false)
    }
    isNoted = true
    return false
  }
}

/** The requests that servers may send, and the client capability that each needs. */
const needs = new Map<string, string>([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots'],
  ['tasks/get', 'tasks'],
  ['tasks/result', 'tasks'],
  ['tasks/list', 'tasks'],
  ['tasks/cancel', 'tasks'],
])

/** Does the protocol define the method as a request? */
const isServerRequest = (method: string): boolean => method === 'ping' || needs.has(method)

/** Did the client declare the capability in `initialize`? `hello`: JSON of its params. */
function mayAskClient(hello: string, { method, text, params }: McpRequest): boolean {
  const name = needs.get(method)
  // Every client answers a ping. Methods that the protocol does not define are passed on.
  if (name === undefined) return true
  const helloParams: unknown = JSON.parse(hello)
  const capabilities = isRecord(helloParams) ? helloParams.capabilities : undefined
  const capability = isRecord(capabilities) ? capabilities[name] : undefined
  if (!isRecord(capability)) return false
  if (name !== 'elicitation') return true
  const mode = textOf(text, member(params, 'mode')) ?? 'form'
  // An empty `elicitation` capability allows forms, the older mode.
  return isRecord(capability[mode]) || (mode === 'form' && capability.url === undefined)
}
