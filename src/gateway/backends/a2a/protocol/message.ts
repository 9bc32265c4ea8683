/** Reads requests of A2A clients in each binding and version. */
import { parseDecision } from '../../../../engines/json/decision.ts'
import { isObject, type JsonObject } from '../../../../ground/base/json-object.ts'
import { type A2aMethod, methodNamed, methodOfPath } from './methods.ts'
import { type FieldPath, MalformedMessage, stringsAt } from './protobuf.ts'

type A2aBinding = 'JSONRPC' | 'HTTP+JSON' | 'GRPC'

/** One request of a client. */
export interface A2aRequest {
  readonly binding: A2aBinding
  /** Name of the method in version 1.0, or as the client sent it if A2A does not define the method. */
  readonly method: string
  readonly isKnown: boolean
  /** Version of the protocol, derived from the names of methods and paths. */
  readonly version: '0.3' | '1.0'
  /** Id of a JSON-RPC request, as JSON. */
  readonly id?: string
  readonly taskId?: string
  readonly contextId?: string
  readonly messageId?: string
  readonly tenant?: string
  /** URLs to which the client wants notifications to be sent. */
  readonly pushUrls: readonly unknown[]
}

/** A request is refused. The message is for its client. */
export class RequestRefusal extends Error {
  override readonly name = 'RequestRefusal'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses a body. Duplicate names are refused, because parsers disagree about them. */
function parseBody(bytes: Uint8Array): JsonObject {
  let value: unknown
  try {
    value = parseDecision(utf8.decode(bytes))
  } catch {
    value = undefined
  }
  if (isObject(value)) return value
  throw new RequestRefusal(400, 'the body is not one JSON object with unique names')
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** Members that parsers of protocol buffers also accept by their names in snake case. */
function idsOf(method: string, params: JsonObject, taskId: string | undefined) {
  const message = isObject(params.message) ? params.message : {}
  const isTask = method.endsWith('Task')
  const found = {
    taskId:
      taskId ??
      textOf(message.taskId ?? message.task_id) ??
      textOf(params.taskId ?? params.task_id) ??
      (isTask || isConfig(method) ? textOf(params.id) : undefined),
    contextId:
      textOf(message.contextId ?? message.context_id) ??
      textOf(params.contextId ?? params.context_id),
    messageId: textOf(message.messageId ?? message.message_id),
    tenant: textOf(params.tenant),
  }
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined))
}

/** Version 0.3 names the task of a configuration by `id`. */
const isConfig = (method: string): boolean => method.includes('PushNotificationConfig')

/** Names that case-insensitive parsers take for those of JSON-RPC. */
const envelope = ['jsonrpc', 'id', 'method', 'params']

/** @throws RequestRefusal */
export function readJsonRpc(bytes: Uint8Array): A2aRequest {
  const body = parseBody(bytes)
  for (const name of Object.keys(body)) {
    if (!envelope.includes(name) && envelope.includes(name.toLowerCase())) {
      throw new RequestRefusal(400, `the request has a member ${JSON.stringify(name)}`)
    }
  }
  const { jsonrpc, method: name, params = {}, id } = body
  if (jsonrpc !== '2.0' || typeof name !== 'string' || !isObject(params)) {
    throw new RequestRefusal(400, 'the body is not a JSON-RPC 2.0 request of A2A')
  }
  const method = methodNamed(name)
  return {
    binding: 'JSONRPC',
    method: method ?? name,
    isKnown: method !== undefined,
    version: method === undefined || method === name ? '1.0' : '0.3',
    ...(id !== undefined && { id: JSON.stringify(id) }),
    ...idsOf(method ?? name, params, undefined),
    pushUrls: pushUrlsIn(method, params),
  }
}

/** Reads a request of the binding HTTP+JSON; undefined if its path belongs to no method. */
export function readPath(verb: string, path: string): A2aRequest | undefined {
  const decoded = decodePath(path)
  const found = methodOfPath(verb === 'HEAD' ? 'GET' : verb, decoded)
  if (found === undefined) return undefined
  const version = /\/v1\/[^/]/.test(decoded) ? '0.3' : '1.0'
  return { binding: 'HTTP+JSON', ...found, isKnown: true, version, pushUrls: [] }
}

/** Decodes a path as servers do, and without empty segments, which some servers ignore. */
function decodePath(path: string): string {
  let decoded = path
  try {
    decoded = decodeURIComponent(path)
  } catch {
    throw new RequestRefusal(400, 'the path has invalid escapes')
  }
  const clean = decoded.replace(/\/{2,}/g, '/').replace(/;[^/]*/g, '')
  return clean.length > 1 && clean.endsWith('/') ? clean.slice(0, -1) : clean
}

/** Adds what the body of a request of the binding HTTP+JSON says. @throws RequestRefusal */
export function withBody(request: A2aRequest, bytes: Uint8Array): A2aRequest {
  if (bytes.length === 0) return request
  const body = parseBody(bytes)
  return {
    ...request,
    ...idsOf(request.method, body, request.taskId),
    pushUrls: pushUrlsIn(request.method as A2aMethod, body),
  }
}

/** Members of a request that sends a message in which URLs are content. */
const contents: ReadonlySet<string> = new Set(['message', 'request', 'metadata'])

/** Finds the values of all members `url` in which readers could see the address of notifications. */
function pushUrlsIn(method: A2aMethod | undefined, params: JsonObject): readonly unknown[] {
  if (method === 'CreateTaskPushNotificationConfig') return urlsIn([params])
  if (method !== undefined && method !== 'SendMessage' && method !== 'SendStreamingMessage')
    return []
  return urlsIn(
    Object.entries(params).flatMap(([name, value]) => (contents.has(name) ? [] : [value])),
  )
}

/** Visits values without recursion, since clients choose how deep they are. */
function urlsIn(values: readonly unknown[]): readonly unknown[] {
  const found: unknown[] = []
  const open = [...values]
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (typeof one !== 'object' || one === null) continue
    for (const [name, value] of Object.entries(one)) {
      if (name.toLowerCase() === 'url') found.push(value)
      else if (typeof value === 'object' && value !== null) open.push(value)
    }
  }
  return found
}

interface GrpcFields {
  readonly taskId?: readonly FieldPath[]
  readonly contextId?: FieldPath
  readonly push?: FieldPath
}

const taskOf = (number: number): GrpcFields => ({ taskId: [[number]] })
const sent: GrpcFields = { taskId: [[2, 3]], contextId: [2, 2], push: [3, 2, 4] }
const sentBefore: GrpcFields = { taskId: [[1, 3]], contextId: [1, 2], push: [2, 2, 2] }

/** Fields of requests by the service, which has the version in its name. */
const grpcFields: Readonly<Record<string, Readonly<Partial<Record<A2aMethod, GrpcFields>>>>> = {
  'lf.a2a.v1.A2AService': {
    SendMessage: sent,
    SendStreamingMessage: sent,
    GetTask: taskOf(2),
    CancelTask: taskOf(2),
    SubscribeToTask: taskOf(2),
    CreateTaskPushNotificationConfig: { taskId: [[3]], push: [4] },
    GetTaskPushNotificationConfig: taskOf(2),
    ListTaskPushNotificationConfigs: taskOf(1),
    DeleteTaskPushNotificationConfig: taskOf(2),
  },
  'a2a.v1.A2AService': {
    SendMessage: sentBefore,
    SendStreamingMessage: sentBefore,
    GetTask: taskOf(1),
    CancelTask: taskOf(1),
    SubscribeToTask: taskOf(1),
    CreateTaskPushNotificationConfig: { taskId: [[1], [3, 1]], push: [3, 2, 2] },
    GetTaskPushNotificationConfig: taskOf(1),
    ListTaskPushNotificationConfigs: taskOf(1),
    DeleteTaskPushNotificationConfig: taskOf(1),
  },
}

const grpcPath = /^\/((?:lf\.)?a2a\.v1\.A2AService)\/([A-Za-z]+)$/
const grpcFrameHead = 5

/** Reads a gRPC request, whose body is one frame; undefined if it is for another service. @throws RequestRefusal */
export function readGrpc(path: string, bytes: Uint8Array): A2aRequest | undefined {
  const [, service = '', name = ''] = grpcPath.exec(path) ?? []
  const method = methodNamed(name)
  const fields = method && grpcFields[service]
  if (method === undefined || fields === undefined) return undefined
  const message = bytes.subarray(grpcFrameHead)
  const [flag, a = 0, b = 0, c = 0, d = 0] = bytes
  const length = a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d
  if (bytes.length < grpcFrameHead || flag !== 0 || length !== message.length) {
    throw new RequestRefusal(400, 'the gRPC message is compressed, or not one message')
  }
  const { taskId = [], contextId, push } = fields[method] ?? {}
  try {
    const task = taskId.flatMap((one) => stringsAt(message, one)).find((one) => one !== '')
    const context = contextId && stringsAt(message, contextId).at(-1)
    return {
      binding: 'GRPC',
      method,
      isKnown: true,
      version: service.startsWith('lf.') ? '1.0' : '0.3',
      // Version 0.3 writes `tasks/ID`, and what belongs to the task after it.
      ...(task !== undefined && { taskId: task.replace(/^tasks\/([^/]+).*$/, '$1') }),
      ...(context !== undefined && context !== '' && { contextId: context }),
      pushUrls: push === undefined ? [] : stringsAt(message, push),
    }
  } catch (error) {
    if (error instanceof MalformedMessage) throw new RequestRefusal(400, 'the message is malformed')
    throw error
  }
}
