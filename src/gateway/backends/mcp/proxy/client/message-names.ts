/**
 * Sets the headers that name the message of a client, before policies or routes read them. Clients of the
 * modern era send these headers, in one of several encodings; other clients need not send them.
 */
import { andThen } from '../../../../../ground/base/and-then.ts'
import type {
  BufferedBody,
  HeaderFields,
  RespondVerdict,
} from '../../../../../ground/exchange/exchange.ts'
import type { RequestContext } from '../../../../proxy/request/request-context.ts'
import { hasEnvelope } from '../../eras/envelope.ts'
import { decodeName, encodeName, nameInBody } from '../../eras/headers.ts'
import { isModern } from '../../eras/versions.ts'
import { codes } from '../../json-rpc.ts'
import {
  type McpMessage,
  type McpRequest,
  MessageRefusal,
  readClientMessages,
} from '../../message.ts'
import { calledByName, callTool } from '../../tool-search/tools.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { jsonRefusal } from '../exchange/refusals.ts'
import { decode } from '../target/response-reader.ts'
import { maxBatchSize } from './checks.ts'

type Result = RespondVerdict | undefined

/** Longest name that is set as a header. */
const maxName = 4096

/**
 * Sets `mcp-method` and `mcp-name` from the body if the client has not sent them, and writes `mcp-name` in its
 * plain form if it is encoded. Returns a refusal if no header can name the messages. Whatever is left for the
 * call to refuse, such as headers that differ from the body, stays as it is.
 *
 * With tool search, `mcp-name` of a call of `call_tool` becomes the name of the tool that it calls. `restoreName` gives
 * the name of the message back.
 *
 * @param mayJoin is called for each message of a batch with its headers set. If it returns false, the batch is
 *   refused. Without it, all batches of several messages are.
 */
export function nameMessage(
  context: RequestContext,
  mayJoin?: () => boolean,
  hasToolSearch = false,
): Result | Promise<Result> {
  const { request, requestBody, bufferLimit } = context.exchange
  if (request.method !== 'POST') return undefined
  normalizeName(context)
  const { headers } = request
  // In the modern era there are no batches, and the call compares the headers with the body.
  const isModernCall = isModern(headers.get('mcp-protocol-version') ?? '')
  const isNamed = isModernCall && headers.has('mcp-method') && headers.has('mcp-name')
  const isSearch = hasToolSearch && (!isNamed || headers.get('mcp-name') === callTool)
  if (isNamed && !isSearch) return undefined
  return andThen(requestBody.read(bufferLimit), nameFromBody, context, { mayJoin, isSearch })
}

/** Writes an encoded name as `encodeName` does, so that one name has one value. */
function normalizeName(context: RequestContext): void {
  const { headers } = context.exchange.request
  const sent = headers.lines('mcp-name')
  if (typeof sent !== 'string') return
  const name = decodeName(sent)
  if (name !== undefined) setHeader(context, 'mcp-name', encodeName(name))
}

function nameFromBody(
  body: BufferedBody,
  context: RequestContext,
  { mayJoin, isSearch }: Naming,
): Result {
  if (context.over) return undefined
  const messages = body.complete ? messagesIn(body.bytes) : undefined
  const [message] = messages ?? []
  if (messages === undefined || message === undefined) return undefined
  if (messages.length > 1) {
    if (mayJoin !== undefined && mayJoinAll(context, messages, mayJoin)) return undefined
    const text = 'send each message of the batch alone: policies or routes judge single messages'
    return jsonRefusal(400, undefined, codes.invalidRequest, text)
  }
  const refused = nameOne(context, message)
  if (refused === undefined && isSearch && message.kind === 'request') nameCalled(context, message)
  return refused
}

interface Naming {
  readonly mayJoin: (() => boolean) | undefined
  readonly isSearch: boolean
}

const sentNameExtension = 'mcp.sentName'

/** Names the tool that a call of `call_tool` calls. A header that differs from the body stays, to be refused. */
function nameCalled(context: RequestContext, message: McpRequest): void {
  const called = calledByName(message)
  const { extensions, request } = context.exchange
  if (called === undefined || request.headers.get('mcp-name') !== callTool) return
  if (Buffer.byteLength(called) > maxName) return
  extensions.set(sentNameExtension, callTool)
  setHeader(context, 'mcp-name', encodeName(called))
}

/**
 * Runs `check` with the name of the message itself in `mcp-name`, which is that of `call_tool` if the header names the
 * tool that is called.
 */
export function withSentName<Checked>(
  { client }: McpExchange,
  check: (headers: HeaderFields, messages: readonly McpMessage[], isBatch: boolean) => Checked,
  messages: readonly McpMessage[],
  isBatch: boolean,
): Checked {
  const sent = client.extension(sentNameExtension)
  const { headers } = client.request
  const called = headers.get('mcp-name')
  if (typeof sent !== 'string' || called === undefined) return check(headers, messages, isBatch)
  headers.set('mcp-name', sent)
  const checked = check(headers, messages, isBatch)
  headers.set('mcp-name', called)
  return checked
}

function mayJoinAll(
  context: RequestContext,
  messages: readonly McpMessage[],
  mayJoin: () => boolean,
): boolean {
  const { headers } = context.exchange.request
  const added = ['mcp-method', 'mcp-name'].filter((name) => !headers.has(name))
  return messages.slice(0, maxBatchSize).every((message) => {
    const isNamed = nameOne(context, message) === undefined
    const may = isNamed && mayJoin()
    for (const name of added) headers.remove(name)
    return may
  })
}

function nameOne(context: RequestContext, message: McpMessage): Result {
  // Modern requests must have the headers, and responses must not.
  if (message.kind === 'response' || hasEnvelope(message)) return undefined
  const name = nameInBody(message, 'legacy')
  if (name !== undefined && Buffer.byteLength(name) > maxName) {
    const id = message.kind === 'request' ? message.id : undefined
    return jsonRefusal(400, id, codes.invalidParams, `a name has more than ${maxName} bytes`)
  }
  addHeader(context, 'mcp-method', plainMethod(message.method))
  addHeader(context, 'mcp-name', name === undefined ? undefined : encodeName(name))
  return undefined
}

/** Returns undefined if the bytes are no messages; the call refuses them. */
function messagesIn(bytes: Uint8Array): readonly McpMessage[] | undefined {
  try {
    const found = readClientMessages(decode(bytes))
    return 'kind' in found ? [found] : found
  } catch (error) {
    if (error instanceof MessageRefusal) return undefined
    throw error
  }
}

/** Returns undefined for a method that a header cannot hold. No server knows such a method. */
const plainMethod = (method: string): string | undefined =>
  method.length <= maxName && /^[\x21-\x7e]+$/.test(method) ? method : undefined

function addHeader(context: RequestContext, name: string, value: string | undefined): void {
  if (value === undefined || context.exchange.request.headers.has(name)) return
  setHeader(context, name, value)
}

function setHeader(context: RequestContext, name: string, value: string): void {
  const { headers }: { readonly headers: HeaderFields } = context.exchange.request
  if (headers.get(name) === value) return
  context.keepOriginal()
  headers.set(name, value)
  // Routes may match the header.
  context.isRouteKnown = false
}
