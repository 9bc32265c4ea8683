/** Reads the MCP messages of a request, and makes the variable `mcp` of rules from them. */
import type { Exchange } from '../../../ground/exchange/exchange.ts'
import type { LearnedRecord, LearnedValue } from '../../../ground/exchange/learned.ts'
import { jsonValue, member, textOf } from '../../backends/mcp/json/node.ts'
import { type McpMessage, MessageRefusal, readClientMessages } from '../../backends/mcp/message.ts'

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Returns the messages in the body of a request; none if there is no body. Returns undefined if the body is too large,
 * compressed, or not MCP.
 */
export async function messagesOf(exchange: Exchange): Promise<readonly McpMessage[] | undefined> {
  const { request, requestBody, bufferLimit } = exchange
  if (requestBody.length === 0) return []
  if ((request.headers.get('content-encoding') ?? 'identity') !== 'identity') return undefined
  const body = await requestBody.buffer(bufferLimit)
  if (!body.complete) return undefined
  const { bytes } = body
  if (bytes.length === 0) return []
  try {
    const found = readClientMessages({ text: decoder.decode(bytes) })
    return 'kind' in found ? [found] : found
  } catch (error) {
    // TextDecoder throws a TypeError for bytes that are not UTF-8.
    if (error instanceof MessageRefusal || error instanceof TypeError) return undefined
    throw error
  }
}

/** The variable `mcp` for each message of a request. */
interface McpVariables {
  /** Whether all messages were read. If not, the server may find messages that the rules have not checked. */
  readonly isComplete: boolean
  readonly perMessage: readonly LearnedRecord[]
}

export const noMessages: McpVariables = { isComplete: true, perMessage: [] }
const unreadable: McpVariables = { isComplete: false, perMessage: [] }
/** Messages of an upgraded connection are not read. No rule can name this method. */
const upgraded: McpVariables = { isComplete: false, perMessage: [{ method: 'upgrade' }] }

export async function variablesOf(exchange: Exchange): Promise<McpVariables> {
  if (exchange.request.upgrade !== undefined) return upgraded
  const messages = await messagesOf(exchange)
  if (messages === undefined) return unreadable
  if (messages.length === 0) return noMessages
  const sessionId = exchange.request.headers.get('mcp-session-id')
  return { isComplete: true, perMessage: messages.map((message) => variableOf(message, sessionId)) }
}

/** A response of the client has no method. */
function variableOf(message: McpMessage, sessionId: string | undefined): LearnedRecord {
  const session = sessionId === undefined ? {} : { sessionId }
  if (message.kind === 'response') return session
  const { method } = message
  return { method, methodName: method, ...session, ...itemOf(message) }
}

function itemOf(message: Exclude<McpMessage, { kind: 'response' }>): LearnedRecord {
  const { text, params, method } = message
  const name = textOf(text, member(params, 'name'))
  const uri = textOf(text, member(params, 'uri'))
  const given = member(params, 'arguments')
  const used = given && { arguments: jsonValue(text, given) as LearnedValue }
  if (method === 'tools/call' && name !== undefined) return { tool: { name, ...used } }
  if (method === 'prompts/get' && name !== undefined) return { prompt: { name, ...used } }
  return method.startsWith('resources/') && uri !== undefined ? { resource: { uri } } : {}
}
