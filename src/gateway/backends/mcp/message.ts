/** Reads JSON-RPC messages of MCP as strictly as the strictest server or client. */
import { JsonScanner } from '../../../engines/json/scanner.ts'
import { openBrace, openBracket } from '../../../engines/json/syntax.ts'
import {
  firstCode,
  type JsonNode,
  member,
  membersOf,
  nodeAt,
  rawOf,
  replace,
  rootOf,
  stringIn,
} from './json/node.ts'
import { envelopeKeys } from './meta-keys.ts'

/** Maximum nesting depth of a message, which is enough for realistic schemas and results. */
const maxDepth = 128

interface Received {
  readonly text: string
  /** The text as UTF-8, if the message was received in these bytes alone. */
  readonly bytes?: Uint8Array | undefined
}

interface Call extends Received {
  readonly method: string
  readonly params: JsonNode | undefined
}

export interface McpNotification extends Call {
  readonly kind: 'notification'
}

export interface McpRequest extends Call {
  readonly kind: 'request'
  /** The id as a JSON string or number. */
  readonly id: string
}

export interface McpResponse extends Received {
  readonly kind: 'response'
  /** Undefined only in an error response whose sender could not read the id of the request. */
  readonly id: string | undefined
  /** Exactly one of `result` and `error` is set. */
  readonly result: JsonNode | undefined
  readonly error: JsonNode | undefined
}

export type McpMessage = McpRequest | McpNotification | McpResponse

/** Thrown if a text is not a valid message. */
export class MessageRefusal extends Error {
  override readonly name = 'MessageRefusal'
  /** JSON-RPC error code: -32700 for text that is not JSON, -32600 for JSON that is not a message. */
  readonly code: number
  /** Method of the message, if it could be read. */
  readonly method: string | undefined

  constructor(code: number, message: string, method?: string) {
    super(message)
    this.code = code
    this.method = method
  }
}

const members = ['jsonrpc', 'id', 'method', 'params', 'result', 'error']
/** Members of params that are used for authorization or routing. */
const paramMembers = [
  'name',
  'uri',
  'ref',
  'cursor',
  'arguments',
  '_meta',
  'requestId',
  'level',
  'taskId',
  'notifications',
  'requestState',
  'inputResponses',
]
/** Members of `params.ref` of completion/complete, which name a prompt or a template. */
const refMembers = ['type', 'name', 'uri']
/** Only methods with this prefix are notifications; all others are requests and need an id. */
const notificationPrefix = 'notifications/'

/** @throws MessageRefusal */
export function readMessage(text: string): McpMessage {
  const received = { text }
  scan(received)
  return scannedMessage(received)
}

/** Returns undefined for a message of another kind. @throws MessageRefusal */
export function readRequest(text: string): McpRequest | undefined {
  const message = readMessage(text)
  return message.kind === 'request' ? message : undefined
}

/** Returns undefined for a message of another kind. @throws MessageRefusal */
export function readResponse(text: string): McpResponse | undefined {
  const message = readMessage(text)
  return message.kind === 'response' ? message : undefined
}

/** Reads one message, or a batch, which only version 2025-03-26 allows. @throws MessageRefusal */
export function readMessages(received: Received): McpMessage | readonly McpMessage[] {
  scan(received)
  if (firstCode(received.text) !== openBracket) return scannedMessage(received)
  return readBatch(received.text)
}

function readBatch(text: string): readonly McpMessage[] {
  const { values = [] } = rootOf(text)
  if (values.length === 0) throw new MessageRefusal(-32600, 'the batch is empty')
  return values.map((node) => readMessage(rawOf(text, node)))
}

/**
 * Reads a message or a batch of a client. Whether a message is a notification depends on its method, not on
 * a missing id, because a server could execute a request that has no id. @throws MessageRefusal
 */
export function readClientMessages(received: Received): McpMessage | readonly McpMessage[] {
  const found = readMessages(received)
  for (const message of 'kind' in found ? [found] : found) requireKind(message)
  return found
}

function requireKind(message: McpMessage): void {
  if (message.kind === 'response') return
  const { kind, method } = message
  const isNotification = method.startsWith(notificationPrefix)
  if (kind === 'notification' && !isNotification) {
    throw new MessageRefusal(-32600, 'a request needs an id', method)
  }
  if (kind === 'request' && isNotification) {
    throw new MessageRefusal(-32600, 'a notification must not have an id', method)
  }
}

/** Knows where the members of the message are that is being read. */
const scanner = new JsonScanner({ noted: members, names: 'unique', maxDepth })

/** Accepts JSON. @throws MessageRefusal */
function scan({ text, bytes }: Received): void {
  if (scanner.scanText(text, bytes)) return
  scanner.release()
  throw new MessageRefusal(-32700, scanner.problem)
}

const has = (name: string): boolean => scanner.startOf(name) >= 0

function nodeOf(text: string, name: string): JsonNode | undefined {
  const start = scanner.startOf(name)
  return start < 0 ? undefined : nodeAt(text, start, scanner.endOf(name), 1)
}

/** Returns the value of a member; undefined if it is no string. */
function stringOf(text: string, name: string): string | undefined {
  const start = scanner.startOf(name)
  return text[start] === '"' ? stringIn(text, start, scanner.endOf(name)) : undefined
}

/** Reads the message that was scanned last. */
function scannedMessage(received: Received): McpMessage {
  try {
    if (firstCode(received.text) !== openBrace)
      throw new MessageRefusal(-32600, 'a message is an object')
    refuseLookalikes(scanner.otherNames(), members)
    if (stringOf(received.text, 'jsonrpc') !== '2.0') {
      throw new MessageRefusal(-32600, 'jsonrpc must be "2.0"')
    }
    return has('method') ? scannedCall(received) : scannedResponse(received)
  } finally {
    scanner.release()
  }
}

function scannedCall({ text, bytes }: Received): McpRequest | McpNotification {
  const method = stringOf(text, 'method')
  if (method === undefined) throw new MessageRefusal(-32600, 'method must be a string')
  if (has('result') || has('error')) {
    throw new MessageRefusal(-32600, 'a message is a call or a response, not both')
  }
  const params = nodeOf(text, 'params')
  if (params !== undefined && params.type !== 'object') {
    throw new MessageRefusal(-32600, 'params must be an object')
  }
  refuseLookalikes(params?.keys, paramMembers)
  refuseLookalikes(member(params, 'ref')?.keys, refMembers)
  refuseLookalikes(member(params, '_meta')?.keys, envelopeKeys)
  if (!has('id')) return { kind: 'notification', text, bytes, method, params }
  return { kind: 'request', text, bytes, method, id: receivedId(text), params }
}

function scannedResponse({ text, bytes }: Received): McpResponse {
  const result = nodeOf(text, 'result')
  const error = nodeOf(text, 'error')
  if ((result === undefined) === (error === undefined)) {
    throw new MessageRefusal(-32600, 'a message has a method, a result or an error')
  }
  if (!has('id') || text[scanner.startOf('id')] === 'n') {
    if (error === undefined) throw new MessageRefusal(-32600, 'a response needs an id')
    return { kind: 'response', text, bytes, id: undefined, result, error }
  }
  return { kind: 'response', text, bytes, id: receivedId(text), result, error }
}

const numberStart = /[-\d]/

/** Returns the id as JSON. Strings are written by JSON.stringify, so that equal ids have equal texts. */
function receivedId(text: string): string {
  const value = stringOf(text, 'id')
  if (value !== undefined) return JSON.stringify(value)
  const start = scanner.startOf('id')
  if (numberStart.test(text[start] ?? '')) return text.slice(start, scanner.endOf('id'))
  throw new MessageRefusal(-32600, 'an id is a string or a number')
}

/** A number as JSON, or as a string in JSON. */
const numberId = /^("?)(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\1$/

/**
 * Returns the response with the id of the request; undefined if it is to another request. Servers read number
 * ids as doubles, and write them in their own form or as strings, which the clients of the official SDKs accept.
 */
export function responseTo(response: McpResponse, id: string): McpResponse | undefined {
  if (response.id === id) return response
  if (response.id === undefined || plainId(response.id) !== plainId(id)) return undefined
  return readResponse(withId(response, id))
}

/** Returns a number id as JavaScript writes it, however it is written, and other ids unchanged. */
export function plainId(id: string): string {
  const number = numberId.exec(id)?.[2]
  return number === undefined ? id : String(Number(number))
}

/** Returns the progress token of a request, as JSON. */
export function progressTokenOf({ text, params }: McpRequest): string | undefined {
  const token = member(member(params, '_meta'), 'progressToken')
  return token && rawOf(text, token)
}

/**
 * Returns the params of a message with other members of `_meta`, and without those with the keys `dropped`. `meta` and
 * `added` are members as JSON.
 */
export function paramsWithMeta(
  { text, params }: Pick<McpRequest, 'text' | 'params'>,
  meta: readonly string[],
  dropped: readonly string[] = [],
  added: readonly string[] = [],
): string {
  const kept = membersOf(text, params, ['_meta', ...dropped])
  return `{${[...kept, `"_meta":{${meta.join(',')}}`, ...added].join(',')}}`
}

/** Where the id of a message is; undefined if it has none. */
export const idIn = (text: string): JsonNode | undefined => member(rootOf(text), 'id')

/** Replaces the id of a message. `id` is JSON. */
export function withId({ text }: Pick<McpResponse, 'text'>, id: string): string {
  const node = idIn(text)
  return node === undefined ? text : replace(text, node, id)
}

/** Refuses keys such as `Name`, because parsers that ignore case would read them as `name`. */
function refuseLookalikes(keys: readonly string[] | undefined, known: readonly string[]): void {
  if (keys === undefined) return
  for (const key of keys) {
    if (known.includes(key)) continue
    const upper = key.toUpperCase()
    const meant = known.find((one) => one.toUpperCase() === upper)
    if (meant !== undefined) {
      throw new MessageRefusal(-32600, `the key ${JSON.stringify(key)} must be ${meant}`)
    }
  }
}
