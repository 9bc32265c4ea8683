/** The era of each target: found by asking, and remembered for a while, because servers are replaced. */

import { ExpiringMap } from '../../../../../ground/base/bounded-map.ts'
import { now } from '../../../../proxy/upstream/endpoint.ts'
import { type DiscoverResult, isModernServer, readDiscoverResult } from '../../eras/discover.ts'
import { modernVersion } from '../../eras/versions.ts'
import { gatewayRequestId } from '../../ids.ts'
import { codes, errorCodeOf } from '../../json-rpc.ts'
import { type McpResponse, MessageRefusal, readResponse } from '../../message.ts'
import { metaKeys } from '../../meta-keys.ts'
import type { ProtocolEra } from '../../methods.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { type HttpErrorResponse, type TargetFailure, toFailure } from '../target/target-failure.ts'
import { type McpTargetEntry, TargetMemory } from '../target/targets.ts'
import { askQuietly, gatewayRequest, type OnAbandon } from '../target/transport.ts'
import { modernTransport } from './modern-transport.ts'

/** How long the era of a target is cached. */
const keptMs = 5 * 60_000

/** How long a server may take to say of which era it is. A server that says nothing is legacy. */
const probeMs = 5_000

interface TargetEra {
  readonly era: ProtocolEra
  /** Whether a modern server has refused to begin a session. */
  readonly hasNoSessions?: boolean
}

/** Maximum number of clients of a target whose responses to `server/discover` are kept. */
const maxClients = 256

/** What is known of a target. What it has told one client is not shared with another. */
interface Known {
  era: { readonly era: TargetEra; readonly until: number } | undefined
  /** Whether the target gave a session id when a session was begun last. */
  sessions: { readonly has: boolean; readonly until: number } | undefined
  /** Responses to `server/discover` by client. */
  readonly offers: ExpiringMap<string, DiscoverResult>
}

const known = new TargetMemory<Known>(() => ({
  era: undefined,
  sessions: undefined,
  offers: new ExpiringMap(maxClients, keptMs),
}))

/** Returns the era of the target if it is remembered. */
export function knownEra(entry: McpTargetEntry): TargetEra | undefined {
  // The gateway itself serves the tools of APIs.
  if (entry.target.openapi !== undefined) return { era: 'modern', hasNoSessions: true }
  const { era } = known.of(entry)
  return era !== undefined && era.until > now() ? era.era : undefined
}

/** Called if a response does not fit the era. The next request asks the target again. */
export function forgetEra(entry: McpTargetEntry): void {
  known.of(entry).era = undefined
}

/** Called if a modern server has refused to begin a session, so that it is not asked for one again soon. */
export function noteNoSessions(entry: McpTargetEntry): void {
  const found = known.of(entry)
  if (found.era?.era.era !== 'modern') return
  found.era = { ...found.era, era: { era: 'modern', hasNoSessions: true } }
}

/** Keeps whether a legacy server has given a session id. */
export function noteSessions(entry: McpTargetEntry, has: boolean): void {
  known.of(entry).sessions = { has, until: now() + keptMs }
}

/** Whether clients have sessions at the legacy server. Undefined if that is not known. */
export function hasSessions(entry: McpTargetEntry): boolean | undefined {
  if (entry.target.protocol === 'SSE') return true
  const { sessions } = known.of(entry)
  return sessions !== undefined && sessions.until > now() ? sessions.has : undefined
}

/** Whether the server had sessions when it was asked last, however long ago. */
export const hadSessions = (entry: McpTargetEntry): boolean =>
  known.of(entry).sessions?.has === true

/** Returns what a modern server offers this client, if it has told. */
export function knownDiscoverResult(
  { identity }: Pick<McpExchange, 'identity'>,
  entry: McpTargetEntry,
): DiscoverResult | undefined {
  return known.of(entry).offers.get(identity)
}

/** Returns the era of a target. Rejects with a TargetFailure or GatewayError if the target does not report it. */
export async function findEra(
  exchange: McpExchange,
  entry: McpTargetEntry,
  onAbandon: OnAbandon,
): Promise<TargetEra> {
  const found = knownEra(entry)
  if (found !== undefined) return found
  if (entry.target.protocol === 'SSE') return legacy
  const part = await discover(exchange, entry, onAbandon)
  const era: TargetEra = part === undefined ? legacy : { era: 'modern' }
  known.of(entry).era = { era, until: now() + keptMs }
  return era
}

/** Returns what a modern server offers this client; undefined if the server is legacy. Rejects as `findEra`. */
export async function findDiscoverResult(
  exchange: McpExchange,
  entry: McpTargetEntry,
  onAbandon: OnAbandon,
): Promise<DiscoverResult | undefined> {
  if ((await findEra(exchange, entry, onAbandon)).era === 'legacy') return undefined
  const found = knownDiscoverResult(exchange, entry)
  if (found !== undefined) return found
  const part = await discover(exchange, entry, onAbandon)
  if (part === undefined) forgetEra(entry)
  return part
}

const legacy: TargetEra = { era: 'legacy' }

/** Asks a server what it offers. Resolves to undefined if it is not modern. */
async function discover(
  exchange: McpExchange,
  entry: McpTargetEntry,
  onAbandon: OnAbandon,
): Promise<DiscoverResult | undefined> {
  const envelope = {
    [metaKeys.version]: modernVersion,
    [metaKeys.clientInfo]: { name: 'sluice', version: exchange.shared.version },
    [metaKeys.capabilities]: {},
  }
  const params = JSON.stringify({ _meta: envelope })
  const request = gatewayRequest('server/discover', params, gatewayRequestId('discover'))
  const transport = modernTransport(exchange, entry, modernVersion)
  try {
    const { response } = await askQuietly(transport, request, probeMs, onAbandon)
    const part = readDiscoverResult(entry.target.name, response)
    if (part === undefined || !isModernServer(part)) return undefined
    known.of(entry).offers.set(exchange.identity, part)
    return part
  } catch (thrown) {
    const failure = toFailure(thrown)
    if (isRefusedByEra(failure) || failure.hasTimedOut) return undefined
    throw failure
  }
}

/** Whether the refusal shows that a modern server got a request without an envelope. */
export function isRefusedByModern(httpResponse: HttpErrorResponse | undefined): boolean {
  if (httpResponse?.status !== 400) return false
  try {
    const response = readResponse(Buffer.from(httpResponse.body).toString())
    return response !== undefined && isErrorOfModern(response)
  } catch (error) {
    if (error instanceof MessageRefusal) return false
    throw error
  }
}

/** Whether the error may be the response of a modern server to a request without an envelope. */
export function isErrorOfModern({ text, error }: McpResponse): boolean {
  const code = error === undefined ? undefined : errorCodeOf(text)
  return code === codes.unsupportedVersion || code === codes.headerMismatch
}

/**
 * Whether the server may be of the other era. Servers refuse such requests in many ways. A status that says nothing
 * about the protocol, such as 401 or 503, leaves the era open.
 */
export function isRefusedByEra({ httpResponse }: TargetFailure): boolean {
  if (httpResponse === undefined) return false
  const { status } = httpResponse
  return status >= 400 && status < 500 && ![401, 403, 407, 408, 425, 429].includes(status)
}
