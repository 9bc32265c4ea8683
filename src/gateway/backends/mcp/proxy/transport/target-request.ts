/** Makes the requests that the gateway sends to MCP servers. */

import type { CallRequest } from '../../../../../engines/http/contracts/calls.ts'
import { FlatHead } from '../../../../../engines/http/message/head-output.ts'
import { checkField } from '../../../../../engines/http/message/header-fields.ts'
import type { UpstreamAddress } from '../../../../../engines/http/sockets/upstream-address.ts'
import { andThen } from '../../../../../ground/base/and-then.ts'
import { bytesOf } from '../../../../../ground/base/buffers.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import { FollowingExchange } from '../../../../../ground/exchange/derived.ts'
import type {
  Exchange,
  HeaderFields,
  RequestHead,
  RespondVerdict,
} from '../../../../../ground/exchange/exchange.ts'
import { lowerCase } from '../../../../../ground/exchange/field-case.ts'
import { forwardingExtensions } from '../../../../../ground/exchange/forwarding.ts'
import { FieldPairs, MemoryBody } from '../../../../../ground/exchange/memory-message.ts'
import { isCredentialName } from '../../../../../ground/secrets/credential-names.ts'
import type { BackendAccess } from '../../../../proxy/config/backend-access.ts'
import { requireUsable } from '../../../../proxy/request/destinations.ts'
import type { UpstreamEndpoint } from '../../../../proxy/upstream/endpoint.ts'
import type { NameRace } from '../../../../proxy/upstream/name-endpoints.ts'
import { mcpStepOf } from '../../policy/apply.ts'
import { isOwnHeader } from '../exchange/forwarded-headers.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { StdioHostClient } from '../target/stdio-host.ts'
import { TargetFailure } from '../target/target-failure.ts'
import { type McpPlace, type McpTargetEntry, placeOf } from '../target/targets.ts'

export interface TargetMessage {
  readonly method: string
  readonly body?: string | Uint8Array | undefined
  /** Headers that the gateway sets itself. */
  readonly headers: readonly (readonly [string, string])[]
  /** Label of the endpoint that has the session. */
  readonly pinned?: string | undefined
  /** Path and query. If omitted, those of the target are used. */
  readonly path?: string | undefined
  /** Called with the chosen endpoint, and again if the connection is made to another address of its name. */
  readonly onEndpoint?: (endpoint: UpstreamEndpoint) => void
  /** Whether the response is a stream without an end. */
  readonly isLong?: boolean | undefined
  /** Whether the server may receive the message twice. */
  readonly isRepeatable?: boolean | undefined
}

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
  const place =
    entry.target.stdio === undefined
      ? placeOf(exchange.runtime, entry, access, message.pinned)
      : placeOfHost(exchange.shared.stdioHost)
  return andThen(place, prepareAt, exchange, { access, message, whole })
}

/** The process that runs commands. TLS and other settings for connections to servers do not apply to it. */
function placeOfHost(host: StdioHostClient | undefined): McpPlace {
  const endpoint = host?.endpoints.all[0]
  if (host === undefined || endpoint === undefined) throw new GatewayError('no_endpoints')
  const { address } = endpoint
  return { endpoint, address, fallbackAddresses: [], race: undefined, authority: host.authority }
}

type Field = readonly [name: string, value: string]
type TargetHead = Pick<RequestHead, 'method' | 'scheme' | 'authority' | 'path' | 'query'>

interface Planned {
  readonly access: BackendAccess
  readonly message: TargetMessage
  /** Path and query. */
  readonly whole: string
}

interface Prepared extends Planned {
  readonly place: McpPlace
}

function prepareAt(
  place: McpPlace,
  exchange: McpExchange,
  planned: Planned,
): ReadyRequest | Promise<ReadyRequest> {
  const { access, message, whole } = planned
  const prepared = { access, message, whole, place }
  const mark = whole.indexOf('?')
  const head = {
    method: message.method,
    scheme: place.address.tls === undefined ? 'http' : 'https',
    authority: authorityOf(exchange, place),
    path: mark < 0 ? whole : whole.slice(0, mark),
    query: mark < 0 ? undefined : whole.slice(mark + 1),
  } as const
  const fields = fieldsOf(exchange, message, withheldFrom(exchange, access))
  const body = message.body === undefined ? undefined : bodyOf(message.body)
  // Only policies need the request as an exchange.
  return access.steps.length === 0
    ? new ReadyRequest(exchange, prepared, head, fields, body)
    : prepareWithSteps(exchange, prepared, head, fields, body)
}

async function prepareWithSteps(
  exchange: McpExchange,
  prepared: Prepared,
  head: TargetHead,
  fields: readonly Field[],
  body: Buffer | undefined,
): Promise<ReadyRequest> {
  const own = new TargetExchange(exchange.client, head, new FieldPairs(fields), body)
  await runSteps(prepared.access.steps, own)
  const { request } = own
  return new ReadyRequest(exchange, prepared, request, request.headers.pairs, body, own)
}

const bodyOf = (body: string | Uint8Array): Buffer =>
  Buffer.isBuffer(body) ? body : Buffer.from(body)

async function runSteps(steps: BackendAccess['steps'], own: TargetExchange): Promise<void> {
  for (const step of steps) {
    const pending = step.onRequest?.(own)
    const verdict = pending instanceof Promise ? await pending : pending
    if (verdict?.kind === 'respond') throw refusedBy(verdict)
  }
}

/** Passes the refusal of a policy to the client, with the challenge that it can answer. */
function refusedBy({
  status,
  headers = [],
  body = '',
  reason,
  detail,
  consent,
}: RespondVerdict): TargetFailure {
  return new TargetFailure(detail ?? reason, {
    httpResponse: { status, headers, body: bytesOf(body) },
    consent,
  })
}

/** A request whose policies have run. */
export class ReadyRequest implements CallRequest {
  readonly address: UpstreamAddress
  readonly fallbackAddresses: readonly UpstreamAddress[]
  readonly race: NameRace | undefined
  readonly head: string
  readonly body: Buffer | undefined
  readonly connectTimeoutMs: number
  readonly timeoutMs: number
  readonly isLongLived: boolean
  /** A tool call must not be repeated. */
  readonly isOnce: boolean
  /** The endpoint that the connection goes to. */
  endpoint: UpstreamEndpoint
  readonly #access: BackendAccess
  /** The request as policies see it; undefined if there are none. */
  readonly #seen: Exchange | undefined
  readonly #message: TargetMessage
  readonly #scheme: string
  readonly #authority: string
  /** Path and query. */
  readonly #whole: string

  constructor(
    exchange: McpExchange,
    { access, place, message, whole }: Prepared,
    head: TargetHead,
    fields: readonly Field[],
    body: Buffer | undefined,
    seen?: Exchange,
  ) {
    const { connectTimeoutMs = 0, requestTimeoutMs } = access.policies.connection
    this.address = place.address
    this.fallbackAddresses = place.fallbackAddresses
    this.race = place.race
    this.head = headText(head, fields, body)
    this.body = body
    this.connectTimeoutMs = connectTimeoutMs
    this.isLongLived = message.isLong ?? false
    this.timeoutMs = this.isLongLived ? 0 : (requestTimeoutMs ?? ruleTimeout(exchange))
    this.isOnce =
      message.isRepeatable !== true && message.method !== 'GET' && message.method !== 'DELETE'
    this.endpoint = place.endpoint
    this.#access = access
    this.#seen = seen
    this.#message = message
    this.#scheme = head.scheme
    this.#authority = head.authority
    this.#whole = whole
    message.onEndpoint?.(this.endpoint)
  }

  /** The URL of the request. Its host is the value of the Host header. */
  get url(): string {
    return `${this.#scheme}://${this.#authority}${this.#whole}`
  }

  /** Passes the response to the policies. Returns whether one of them asks to send the message again. */
  informSteps(status: number, headers: HeaderFields): boolean {
    const { steps, policies } = this.#access
    const seen = this.#seen
    if (seen === undefined || (status !== 401 && policies.connection.bindsTokens !== true)) {
      return false
    }
    let asksAgain = false
    for (const step of steps) {
      if (step.onBackendResponse?.(seen, status, headers) === true) asksAgain = true
    }
    return asksAgain
  }

  onAlternateAddress(address: UpstreamAddress): void {
    this.endpoint = this.race?.endpointAt(address) ?? this.endpoint
    this.#message.onEndpoint?.(this.endpoint)
  }
}

/** Whether there is a timeout for the responses of the target. */
export function hasTimeout(exchange: McpExchange, entry: McpTargetEntry): boolean {
  const { requestTimeoutMs } = exchange.accessOf(entry).policies.connection
  return requestTimeoutMs !== undefined || ruleTimeout(exchange) > 0
}

/** Returns the milliseconds that the target may take for a whole response; 0 means no limit. */
export function timeoutOf(exchange: McpExchange, entry: McpTargetEntry): number {
  const { requestTimeoutMs } = exchange.accessOf(entry).policies.connection
  return requestTimeoutMs ?? ruleTimeout(exchange)
}

/** Returns the timeout of the whole response, from the rule or a policy; 0 means no limit. */
function ruleTimeout({ placement, client }: McpExchange): number {
  const { backendTimeoutMs = 0, requestTimeoutMs } = placement.rule.resource
  const byPolicy = client.extension(forwardingExtensions.requestTimeoutMs)
  const whole = requestTimeoutMs ?? (typeof byPolicy === 'number' ? byPolicy : 0)
  if (backendTimeoutMs <= 0 || whole <= 0) return Math.max(backendTimeoutMs, whole, 0)
  return Math.min(backendTimeoutMs, whole)
}

/**
 * Returns the value of Host. By default it is the server's own name, because servers check Host to protect
 * against DNS rebinding.
 */
function authorityOf({ placement, chosen, client }: McpExchange, { authority }: McpPlace): string {
  const isSet = placement.rule.filters.setsHost || chosen.filters.setsHost
  return isSet || client.extension(forwardingExtensions.hostRewrite) === 'None'
    ? client.request.authority
    : authority
}

/** Which of the client's own headers a target does not get. */
type Withheld = 'nothing' | 'credentials' | 'all that may identify'

/**
 * Several targets get no header that may identify the client, because it is meant for one server. For a single
 * target a policy can decide about credentials; by default they are forwarded unless they were meant for the
 * gateway.
 */
function withheldFrom({ only }: McpExchange, { policies }: BackendAccess): Withheld {
  if (only === undefined) return 'all that may identify'
  const { credentials } = policies.connection
  const isForwarded =
    credentials === undefined
      ? mcpStepOf(policies)?.authentication === undefined
      : credentials === 'client'
  return isForwarded ? 'nothing' : 'credentials'
}

/** Returns the header fields to send: those of the client that are forwarded, and the gateway's own. */
function fieldsOf(
  { client }: McpExchange,
  { headers }: TargetMessage,
  withheld: Withheld,
): readonly Field[] {
  let fields: Field[] | undefined
  for (const field of client.request.headers.pairs) {
    const name = lowerCase(field[0])
    if (isOwnHeader(name) || hasField(headers, name)) continue
    const isWithheld =
      withheld !== 'nothing' &&
      client.identifying.includes(name) &&
      (withheld !== 'credentials' || isCredentialName(name))
    if (isWithheld) continue
    if (fields === undefined) fields = [field]
    else fields.push(field)
  }
  return fields === undefined ? headers : [...fields, ...headers]
}

function hasField(fields: readonly Field[], name: string): boolean {
  for (const field of fields) if (field[0] === name) return true
  return false
}

/** A request for one target, as its policies see it. */
class TargetExchange extends FollowingExchange {
  readonly request: RequestHead & { readonly headers: FieldPairs }
  readonly requestBody: MemoryBody
  readonly response = undefined
  readonly responseBody = undefined

  constructor(
    client: Exchange,
    head: TargetHead,
    headers: FieldPairs,
    body: Uint8Array | undefined,
  ) {
    super(client)
    this.request = { ...head, version: '1.1', headers }
    this.requestBody = new MemoryBody(body)
  }
}

/** Used by one head after the other. */
const flat = new FlatHead()

/** Writes the head of a request. @throws GatewayError filter_failed */
function headText(
  { method, path, query, authority }: TargetHead,
  fields: readonly Field[],
  body: Buffer | undefined,
): string {
  checkField('host', authority)
  const target = query === undefined ? path : `${path}?${query}`
  if (!/^[\x21-\x7e\x80-\xff]+$/.test(target)) throw new GatewayError('filter_failed', 'bad path')
  flat.clear()
  flat.appendText(method)
  flat.appendText(' ')
  flat.appendText(target)
  flat.appendText(' HTTP/1.1\r\n')
  flat.appendField('host', authority)
  for (const field of fields) {
    checkField(field[0], field[1])
    flat.appendField(field[0], field[1])
  }
  if (body !== undefined) flat.appendField('content-length', `${body.length}`)
  flat.appendText('\r\n')
  return flat.text
}
