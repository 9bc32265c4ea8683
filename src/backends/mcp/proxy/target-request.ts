/** Requests of the gateway to MCP servers: where they go, and with which headers. */

import type { CallRequest } from '../../../engine/contracts/calls.ts'
import { checkField } from '../../../engine/message/header-fields.ts'
import { GatewayError } from '../../../errors/index.ts'
import { forwardingFacts } from '../../../exchange/forwarding.ts'
import { FieldPairs } from '../../../exchange/memory-message.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import type { UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import { mcpStepOf } from '../policy/step.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { type McpPlace, placeOf } from './resolve-mcp-target.ts'
import { TargetExchange } from './target-exchange.ts'

export interface TargetMessage {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly body?: string
  /** What the gateway sets itself. */
  readonly headers: readonly (readonly [string, string])[]
  /** Label of the endpoint that has the session. */
  readonly pinned?: string | undefined
  /** Where it goes, if not to the path of the target. */
  readonly path?: string
  /** Told of the endpoint, and again where another address of its name is connected to. */
  readonly onEndpoint?: (endpoint: UpstreamEndpoint) => void
  /** The answer is a stream without an end. */
  readonly isLong?: boolean
}

export interface ReadyRequest {
  readonly call: CallRequest
  /** Where it goes, by the name that the server is called in it. */
  readonly url: string
  /** That of the address that is connected to. */
  endpoint: UpstreamEndpoint
}

/** The gateway speaks for itself in these, or they are about the client's own connection. */
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
/** Resolves the target and lets its policies have their say. Rejects with a GatewayError. */
export async function prepareRequest(
  exchange: McpExchange,
  entry: McpTargetEntry,
  message: TargetMessage,
): Promise<ReadyRequest> {
  const access = exchange.accessOf(entry)
  const { problem } = access
  if (problem !== undefined) throw new GatewayError(problem.code, problem.detail)
  const found = placeOf(exchange.runtime, entry, access, message.pinned)
  const place = found instanceof Promise ? await found : found
  const body = message.body === undefined ? undefined : Buffer.from(message.body)
  const scheme = place.address.tls === undefined ? 'http' : 'https'
  const whole = message.path ?? entry.target.path
  const [path = '/', ...query] = whole.split('?')
  const head = {
    method: message.method,
    scheme,
    authority: authorityOf(exchange, place),
    path,
    query: query.length === 0 ? undefined : query.join('?'),
  } as const
  const headers = headersOf(exchange, message, passesCredentials(exchange, access))
  const own = new TargetExchange(exchange.client, head, headers, body)
  for (const step of access.steps) {
    const pending = step.onRequest?.(own)
    const verdict = pending instanceof Promise ? await pending : pending
    if (verdict?.kind === 'respond') throw new GatewayError('policy_unenforceable', verdict.reason)
  }
  const { connectTimeoutMs = 0, requestTimeoutMs } = access.policies.connection
  const ready: ReadyRequest = {
    endpoint: place.endpoint,
    url: `${scheme}://${own.request.authority}${whole}`,
    call: {
      address: place.address,
      others: place.others,
      race: place.race,
      head: headText(own.request, body),
      body,
      connectTimeoutMs,
      timeoutMs: message.isLong === true ? 0 : (requestTimeoutMs ?? ruleTimeout(exchange)),
      isLongLived: message.isLong ?? false,
      // What tools do is done.
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

/** What the rule or a policy allows a request, until its whole answer is there; 0 = no limit. */
function ruleTimeout({ placement, client }: McpExchange): number {
  const { backendTimeoutMs = 0, requestTimeoutMs } = placement.rule.resource
  const byPolicy = client.facts.get(forwardingFacts.requestTimeoutMs)
  const whole = requestTimeoutMs ?? (typeof byPolicy === 'number' ? byPolicy : 0)
  const limits = [backendTimeoutMs, whole].filter((ms) => ms > 0)
  return limits.length === 0 ? 0 : Math.min(...limits)
}

/** Servers look at Host to keep web pages away from them, so by default they get their own name. */
function authorityOf({ placement, chosen, client }: McpExchange, { authority }: McpPlace): string {
  const { request, facts } = client
  const isSet = placement.rule.filters.setsHost || chosen.filters.setsHost
  return isSet || facts.get(forwardingFacts.hostRewrite) === 'None' ? request.authority : authority
}

/**
 * Credentials of the client are meant for one server. They go to the only target of a backend, unless
 * they were for the gateway, or the gateway has credentials of its own there.
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
  const own = new Set(headers.map(([name]) => name))
  const pairs: (readonly [string, string])[] = []
  for (const pair of client.request.headers.entries()) {
    const name = pair[0].toLowerCase()
    if (ownHeaders.has(name) || own.has(name)) continue
    if (withCredentials || !client.credentials.includes(name)) pairs.push(pair)
  }
  return new FieldPairs([...pairs, ...headers])
}

/** @throws GatewayError filter_failed */
function headText(request: TargetExchange['request'], body: Buffer | undefined): string {
  const { method, path, query, authority, headers } = request
  checkField('host', authority)
  const target = query === undefined ? path : `${path}?${query}`
  if (!/^[\x21-\x7e\x80-\xff]+$/.test(target)) throw new GatewayError('filter_failed', 'bad path')
  let text = `${method} ${target} HTTP/1.1\r\nhost: ${authority}\r\n`
  for (const [name, value] of headers.entries()) {
    checkField(name, value)
    text += `${name}: ${value}\r\n`
  }
  if (body !== undefined) text += `content-length: ${body.length}\r\n`
  return `${text}\r\n`
}
