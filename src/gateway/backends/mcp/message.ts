/** Reads JSON-RPC messages of MCP as strictly as the strictest server or client. */
import { type JsonNode, member, rawOf, splice } from './json/node.ts'
import { Outline } from './json/outline.ts'
import { JsonRefusal, scanObject } from './json/scan.ts'
import { envelopeKeys } from './meta-keys.ts'

/** Maximum nesting depth of a message, which is enough for realistic schemas and results. */
const maxDepth = 128
/** Depth up to which nodes are kept, which includes URIs in the content of results of tools in `inputRequests`. */
const keptDepth = 12
const limits = { maxDepth, keptDepth }

interface Received {
  readonly text: string
  /** The text as UTF-8, if the message was received in these bytes alone. */
  readonly bytes?: Uint8Array | undefined
}

interface Call extends Received {
  readonly method: string
  readonly root: JsonNode
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
  readonly root: JsonNode
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
  return messageAt(text, scan(text))
}

/** Reads one message, or a batch, which only version 2025-03-26 allows. @throws MessageRefusal */
export function readMessages(received: Received): McpMessage | readonly McpMessage[] {
  const { text, bytes } = received
  const root = scan(text)
  if (root.type !== 'array') return messageAt(text, root, bytes)
  if (root.values?.length === 0) throw new MessageRefusal(-32600, 'the batch is empty')
  return (root.values ?? []).map((node) => readMessage(rawOf(text, node)))
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

/** The members of the message that is being read. */
const outline = new Outline(members)

function scan(text: string): JsonNode {
  try {
    return scanObject(text, limits, outline)
  } catch (error) {
    outline.reset()
    if (error instanceof JsonRefusal) throw new MessageRefusal(-32700, error.message)
    throw error
  }
}

/** Reads the message that was scanned last. */
function messageAt(text: string, root: JsonNode, bytes?: Uint8Array): McpMessage {
  try {
    if (root.type !== 'object') throw new MessageRefusal(-32600, 'a message is an object')
    refuseLookalikes(outline.others, members)
    if (outline.textOf('jsonrpc') !== '2.0') {
      throw new MessageRefusal(-32600, 'jsonrpc must be "2.0"')
    }
    return outline.typeOf('method') === undefined
      ? responseAt(text, root, bytes)
      : callAt(text, root, bytes)
  } finally {
    outline.reset()
  }
}

function callAt(
  text: string,
  root: JsonNode,
  bytes: Uint8Array | undefined,
): McpRequest | McpNotification {
  const method = outline.textOf('method')
  if (method === undefined) throw new MessageRefusal(-32600, 'method must be a string')
  if (outline.typeOf('result') !== undefined || outline.typeOf('error') !== undefined) {
    throw new MessageRefusal(-32600, 'a message is a call or an answer, not both')
  }
  const params = outline.node('params')
  if (params !== undefined && params.type !== 'object') {
    throw new MessageRefusal(-32600, 'params must be an object')
  }
  refuseLookalikes(params?.keys, paramMembers)
  refuseLookalikes(member(params, 'ref')?.keys, refMembers)
  refuseLookalikes(member(params, '_meta')?.keys, envelopeKeys)
  if (outline.typeOf('id') === undefined) {
    return { kind: 'notification', text, bytes, method, root, params }
  }
  return { kind: 'request', text, bytes, method, id: receivedId(), root, params }
}

function responseAt(text: string, root: JsonNode, bytes: Uint8Array | undefined): McpResponse {
  const result = outline.node('result')
  const error = outline.node('error')
  if ((result === undefined) === (error === undefined)) {
    throw new MessageRefusal(-32600, 'a message has a method, a result or an error')
  }
  const type = outline.typeOf('id')
  if (type === undefined || type === 'null') {
    if (error === undefined) throw new MessageRefusal(-32600, 'an answer needs an id')
    return { kind: 'response', text, bytes, id: undefined, root, result, error }
  }
  return { kind: 'response', text, bytes, id: receivedId(), root, result, error }
}

/** Returns the id as JSON. Strings are written by JSON.stringify, so that equal ids have equal texts. */
function receivedId(): string {
  const value = outline.textOf('id')
  if (value !== undefined) return JSON.stringify(value)
  if (outline.typeOf('id') === 'number') return outline.rawOf('id')
  throw new MessageRefusal(-32600, 'an id is a string or a number')
}

/** A number as JSON, or as a string in JSON. */
const numberId = /^("?)(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\1$/

/**
 * Returns the answer with the id of the request, or undefined if it answers another one. Servers read number
 * ids as doubles, and write them in their own form or as strings, which the clients of the official SDKs accept.
 */
export function answerTo(answer: McpResponse, id: string): McpResponse | undefined {
  if (answer.id === id) return answer
  if (answer.id === undefined || plainId(answer.id) !== plainId(id)) return undefined
  const node = member(answer.root, 'id')
  if (node === undefined) return undefined
  const read = readMessage(splice(answer.text, [{ ...node, text: id }]))
  return read.kind === 'response' ? read : undefined
}

/** Returns a number id as JavaScript writes it, however it is written, and other ids unchanged. */
export function plainId(id: string): string {
  const number = numberId.exec(id)?.[2]
  return number === undefined ? id : String(Number(number))
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
