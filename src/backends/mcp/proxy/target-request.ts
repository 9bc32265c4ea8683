/** Makes the requests that the gateway sends to MCP servers. */
import type { CallRequest } from '../../../engine/contracts/calls.ts'
import { checkField } from '../../../engine/message/header-fields.ts'
import { GatewayError } from '../../../errors/index.ts'
import { FollowingExchange } from '../../../exchange/derived.ts'
import type { Exchange, RequestHead } from '../../../exchange/exchange.ts'
import { forwardingExtensions } from '../../../exchange/forwarding.ts'
import { FieldPairs, MemoryBody } from '../../../exchange/memory-message.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import { requireUsable } from '../../../proxy/request/destinations.ts'
import type { UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import { mcpStepOf } from '../policy/apply.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { type McpPlace, placeOf } from './mcp-targets.ts'

export interface TargetMessage {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly body?: string
  /** Headers that the gateway sets itself. */
  readonly headers: readonly (readonly [string, string])[]
  /** Label of the endpoint that has the session. */
  readonly pinned?: string | undefined
  /** Path and query. If omitted, those of the target are used. */
  readonly path?: string
  /** Called with the chosen endpoint, and again if the connection is made to another address of its name. */
  readonly onEndpoint?: (endpoint: UpstreamEndpoint) => void
  /** Is the response a stream without an end? */
  readonly isLong?: boolean
}

export interface ReadyRequest {
  readonly call: CallRequest
  /** The URL of the request. Its host is the value of the Host header. */
  readonly url: string
  /** The endpoint that the connection goes to. */
  endpoint: UpstreamEndpoint
}

/** Headers that are not forwarded: the gateway sets them, or they concern one connection. */
const ownHeaders = new Set([
  'host',
  'accept',
  'accept-encoding',
  'content-type',
  'content-length',
  'content-encoding',
  'content-md5',
  'digest',
  'content-digest',
  'expect',
  'last-event-id',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'origin',
])

/**
 * Resolves the target and runs its policies. Returns a promise only if one of them does.
 * @throws GatewayError
 */
export function prepareRequest(
  exchange: McpExchange,
  entry: McpTargetEntry,
  message: TargetMessage,
): ReadyRequest | Promise<ReadyRequest> {
  const access = exchange.accessOf(entry)
  requireUsable(access)
  const whole = message.path ?? entry.target.path
  const prepare = (place: McpPlace) => prepareAt(exchange, { access, place, message, whole })
  const found = placeOf(exchange.runtime, entry, access, message.pinned)
  return found instanceof Promise ? found.then(prepare) : prepare(found)
}

interface Prepared {
  readonly access: BackendAccess
  readonly place: McpPlace
  readonly message: TargetMessage
  /** Path and query. */
  readonly whole: string
}

function prepareAt(
  exchange: McpExchange,
  prepared: Prepared,
): ReadyRequest | Promise<ReadyRequest> {
  const { access, place, message, whole } = prepared
  const body = message.body === undefined ? undefined : Buffer.from(message.body)
  const mark = whole.indexOf('?')
  const head = {
    method: message.method,
    scheme: place.address.tls === undefined ? 'http' : 'https',
    authority: authorityOf(exchange, place),
    path: mark < 0 ? whole : whole.slice(0, mark),
    query: mark < 0 ? undefined : whole.slice(mark + 1),
  } as const
  const headers = headersOf(exchange, message, passesCredentials(exchange, access))
  const own = new TargetExchange(exchange.client, head, headers, body)
  if (access.steps.length === 0) return readyRequest(exchange, prepared, own, body)
  return runSteps(access.steps, own).then(() => readyRequest(exchange, prepared, own, body))
}

async function runSteps(steps: BackendAccess['steps'], own: TargetExchange): Promise<void> {
  for (const step of steps) {
    const pending = step.onRequest?.(own)
    const verdict = pending instanceof Promise ? await pending : pending
    if (verdict?.kind === 'respond') throw new GatewayError('policy_unenforceable', verdict.reason)
  }
}

function readyRequest(
  exchange: McpExchange,
  { access, place, message, whole }: Prepared,
  own: TargetExchange,
  body: Buffer | undefined,
): ReadyRequest {
  const { connectTimeoutMs = 0, requestTimeoutMs } = access.policies.connection
  const { scheme, authority } = own.request
  const ready: ReadyRequest = {
    endpoint: place.endpoint,
    url: `${scheme}://${authority}${whole}`,
    call: {
      address: place.address,
      fallbackAddresses: place.fallbackAddresses,
      race: place.race,
      head: headText(own.request, body),
      body,
      connectTimeoutMs,
      timeoutMs: message.isLong === true ? 0 : (requestTimeoutMs ?? ruleTimeout(exchange)),
      isLongLived: message.isLong ?? false,
      // A tool call must not be repeated.
      isOnce: message.method === 'POST',
      onAlternateAddress: (address) => {
        ready.endpoint = place.race?.endpointAt(address) ?? ready.endpoint
        message.onEndpoint?.(ready.endpoint)
      },
    },
  }
  message.onEndpoint?.(ready.endpoint)
  return ready
}

/** Returns the timeout of the whole response, from the rule or a policy; 0 means no limit. */
function ruleTimeout({ placement, client }: McpExchange): number {
  const { backendTimeoutMs = 0, requestTimeoutMs } = placement.rule.resource
  const byPolicy = client.extensions.get(forwardingExtensions.requestTimeoutMs)
  const whole = requestTimeoutMs ?? (typeof byPolicy === 'number' ? byPolicy : 0)
  const limits = [backendTimeoutMs, whole].filter((ms) => ms > 0)
  return limits.length === 0 ? 0 : Math.min(...limits)
}

/**
 * Returns the value of Host. By default it is the server's own name, because servers check Host to protect
 * against DNS rebinding.
 */
function authorityOf({ placement, chosen, client }: McpExchange, { authority }: McpPlace): string {
  const { request, extensions } = client
  const isSet = placement.rule.filters.setsHost || chosen.filters.setsHost
  return isSet || extensions.get(forwardingExtensions.hostRewrite) === 'None'
    ? request.authority
    : authority
}

/**
 * Are the client's credentials forwarded? They never are if there are several targets. Otherwise a policy
 * can decide; by default they are forwarded unless they were meant for the gateway.
 */
function passesCredentials({ backend }: McpExchange, { policies }: BackendAccess): boolean {
  if (backend.targets.length > 1) return false
  const { credentials } = policies.connection
  if (credentials !== undefined) return credentials === 'client'
  return mcpStepOf(policies)?.authentication === undefined
}

function headersOf(
  { client }: McpExchange,
  { headers }: TargetMessage,
  withCredentials: boolean,
): FieldPairs {
  const { pairs } = client.request.headers
  const passed = pairs.filter(([field]) => {
    const name = field.toLowerCase()
    if (ownHeaders.has(name) || headers.some(([own]) => own === name)) return false
    return withCredentials || !client.credentials.includes(name)
  })
  passed.push(...headers)
  return new FieldPairs(passed)
}

/** A request for one target, as its policies see it. */
class TargetExchange extends FollowingExchange {
  readonly request: RequestHead & { readonly headers: FieldPairs }
  readonly requestBody: MemoryBody
  readonly response = undefined
  readonly responseBody = undefined

  constructor(
    client: Exchange,
    head: Pick<RequestHead, 'method' | 'scheme' | 'authority' | 'path' | 'query'>,
    headers: FieldPairs,
    body: Uint8Array | undefined,
  ) {
    super(client)
    this.request = { ...head, version: '1.1', headers }
    this.requestBody = new MemoryBody(body)
  }
}

/** Writes the head of a request. @throws GatewayError filter_failed */
function headText(request: TargetExchange['request'], body: Buffer | undefined): string {
  const { method, path, query, authority, headers } = request
  checkField('host', authority)
  const target = query === undefined ? path : `${path}?${query}`
  if (!/^[\x21-\x7e\x80-\xff]+$/.test(target)) throw new GatewayError('filter_failed', 'bad path')
  // Joined at once: the engine reads the head as one flat text.
  const parts = [method, ' ', target, ' HTTP/1.1\r\nhost: ', authority, '\r\n']
  for (const [name, value] of headers.pairs) {
    checkField(name, value)
    parts.push(name, ': ', value, '\r\n')
  }
  if (body !== undefined) parts.push('content-length: ', `${body.length}`, '\r\n')
  parts.push('\r\n')
  return parts.join('')
}
