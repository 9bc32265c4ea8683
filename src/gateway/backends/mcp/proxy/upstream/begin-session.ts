/** Begins sessions at targets. */

import {
  type InitializeResult,
  readInitializeResult,
  requestedVersion,
} from '../../eras/initialize.ts'
import { initializeResponseOf } from '../../eras/legacy-to-modern.ts'
import { versionFor } from '../../eras/versions.ts'
import { gatewayRequestId } from '../../ids.ts'
import { codes, errorCodeOf, notificationText } from '../../json-rpc.ts'
import { type McpResponse, readRequest, readResponse } from '../../message.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { SessionState, TargetSession } from '../session/session-state.ts'
import { TargetFailure, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import {
  askQuietly,
  gatewayRequest,
  never,
  notify,
  type OnAbandon,
  type OutgoingRequest,
  ownLimitMs,
  type ReceivedResponse,
  type SessionTransport,
} from '../target/transport.ts'
import type { OpenConnections } from '../transport/sse-connection.ts'
import { SseTransport } from '../transport/sse-transport.ts'
import { legacyWire } from '../transport/streamable.ts'
import { httpTransport } from './http-transport.ts'
import { ModernTarget } from './modern-target.ts'
import {
  findDiscoverResult,
  findEra,
  isErrorOfModern,
  isRefusedByEra,
  knownEra,
  noteNoSessions,
  noteSessions,
} from './target-eras.ts'

export interface InitializedSession {
  readonly session: TargetSession
  readonly result: InitializeResult
  readonly response: McpResponse
  /** Status of an error response; 200 if not set. */
  readonly status?: number | undefined
}

/**
 * Makes the transport. `session` is undefined for `initialize`; `held` has the open connections of the
 * session.
 */
export function transportOf(
  exchange: McpExchange,
  entry: McpTargetEntry,
  session: TargetSession | undefined,
  held: OpenConnections,
  state?: SessionState,
): SessionTransport {
  if (session?.isModern === true && state !== undefined) {
    return new ModernTarget(exchange, entry, state)
  }
  if (entry.target.protocol === 'SSE') {
    return new SseTransport(exchange, entry, held, session, state?.id)
  }
  return httpTransport(exchange, entry, legacyWire(session))
}

/**
 * Sends `initialize`, and waits at most `limitMs` if that is not 0. If the server responds with a JSON-RPC error,
 * there is no session.
 */
export async function begin(
  exchange: McpExchange,
  entry: McpTargetEntry,
  request: OutgoingRequest,
  onAbandon: OnAbandon,
  held: OpenConnections,
  limitMs: number,
): Promise<InitializedSession> {
  if (knownEra(entry)?.hasNoSessions) return beginModern(exchange, entry, request, onAbandon)
  const transport = transportOf(exchange, entry, undefined, held)
  const asked = await askQuietly(transport, request, limitMs, onAbandon).catch(toFailure)
  if (asked instanceof TargetFailure) {
    // A connection of the older transport is of no use without a session.
    if (entry.target.protocol === 'SSE') void transport.end()
    if (!isRefusedByEra(asked)) throw asked
    return beginModern(exchange, entry, request, onAbandon, asked)
  }
  const { response, session: id, status } = asked
  if (await prefersModern(exchange, entry, asked, onAbandon)) {
    return beginModern(exchange, entry, request, onAbandon)
  }
  if (response.error === undefined) noteSessions(entry, id !== undefined)
  const result = readInitializeResult(response)
  const { endpoint, connection } = transport
  const session: TargetSession = {
    id,
    endpoint,
    connection,
    version: result.version,
    can: Object.keys(result.capabilities),
  }
  return { session, result, response, status }
}

/**
 * Whether a legacy client should use the server in the modern era. A server without session ids cannot send
 * requests and notifications in the legacy era, even if it supports that era.
 */
async function prefersModern(
  exchange: McpExchange,
  entry: McpTargetEntry,
  { response, session, status }: ReceivedResponse,
  onAbandon: OnAbandon,
): Promise<boolean> {
  if (entry.target.protocol === 'SSE' || session !== undefined) return false
  const isError = response.error !== undefined
  const mayBeModern =
    status !== undefined ||
    isErrorOfModern(response) ||
    errorCodeOf(response.text) === codes.methodNotFound
  if (isError && !mayBeModern) return false
  try {
    return (await findEra(exchange, entry, onAbandon)).era === 'modern'
  } catch (thrown) {
    toFailure(thrown)
    return false
  }
}

/**
 * Responds to `initialize` for a server without sessions. `refusal` is how it refused the request; if the server
 * is not modern, that is the result.
 */
async function beginModern(
  exchange: McpExchange,
  entry: McpTargetEntry,
  request: OutgoingRequest,
  onAbandon: OnAbandon,
  refusal?: TargetFailure,
): Promise<InitializedSession> {
  const offer = await findDiscoverResult(exchange, entry, onAbandon)
  if (offer === undefined) {
    throw refusal ?? new TargetFailure('the server has changed its version')
  }
  noteNoSessions(entry)
  const asked = readRequest(request.text)
  const version = versionFor(asked && requestedVersion(asked))
  const response = readResponse(initializeResponseOf(request.id, version, offer))
  if (response === undefined) throw new TargetFailure('the server offers nothing')
  const result = readInitializeResult(response)
  const can = Object.keys(result.capabilities)
  return { session: { version, can, isModern: true }, result, response }
}

/** Begins a session at a target with the params that the client sent earlier, within the gateway's own limit. */
export async function beginQuietly(
  exchange: McpExchange,
  entry: McpTargetEntry,
  params: string,
  held: OpenConnections,
): Promise<InitializedSession> {
  const request = gatewayRequest('initialize', params, gatewayRequestId('initialize'))
  // Other requests may use the session, so this request must not cancel it.
  const begun = await begin(exchange, entry, request, never, held, ownLimitMs)
  if (begun.response.error !== undefined) {
    throw new TargetFailure('the server refuses to initialize a session')
  }
  if (begun.session.isModern !== true) {
    await notify(transportOf(exchange, entry, begun.session, held), initialized)
  }
  return begun
}

const initialized = notificationText('notifications/initialized')
