/** `initialize`: begins a session at every target. */
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import {
  inSupportedVersion,
  keptParams,
  mergeInitializeResults,
  readInitializeResult,
  requestedVersion,
  withKnownVersion,
} from '../../eras/initialize.ts'
import { legacyVersions, versionFor } from '../../eras/versions.ts'
import { newId } from '../../ids.ts'
import { codes, errorCodeOf, resultText } from '../../json-rpc.ts'
import type { McpRequest } from '../../message.ts'
import { guardInstructions } from '../calls/guard-definitions.ts'
import { chainsFor, checkRequest, checkResponse } from '../calls/joined-processors.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { jsonRefusal, jsonResponse, verdictOf } from '../exchange/refusals.ts'
import { maxNewIdLength, type SessionState, type TargetSession } from '../session/session-state.ts'
import { TargetFailure, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { type OnAbandon, ownLimitMs } from '../target/transport.ts'
import type { OpenConnections } from '../transport/sse-connection.ts'
import { hasTimeout } from '../transport/target-request.ts'
import { begin, type InitializedSession } from '../upstream/begin-session.ts'
import { ClientSession, endEverywhere } from '../upstream/client-session.ts'
import { abandonOf } from './serve-messages.ts'

export async function serveInitialize(
  exchange: McpExchange,
  request: McpRequest,
): Promise<RespondVerdict | undefined> {
  const begun = await beginSession(exchange, request, abandonOf(exchange))
  if (exchange.context.over) return undefined
  if ('kind' in begun) return begun
  const { shared } = exchange
  // Later requests of a stateless backend do not use this session.
  if (exchange.backend.isStateless) {
    void endEverywhere(new ClientSession(exchange, begun.state))
    return jsonResponse(begun.text)
  }
  exchange.sessionId = begun.state.id
  exchange.describe(request.method)
  const id = shared.seal(begun.state)
  if (id.length <= maxNewIdLength) return jsonResponse(begun.text, [['mcp-session-id', id]])
  void endEverywhere(new ClientSession(exchange, begun.state))
  const message = `The session id would have ${id.length} characters, more than ${maxNewIdLength}. Send less in the params of initialize, or use fewer targets.`
  return jsonRefusal(400, request.id, codes.invalidParams, message)
}

/** A session that has begun, and the text of the `initialize` response for the client. */
interface BegunSession {
  readonly text: string
  readonly state: SessionState
}

/** Begins a session at all targets, or returns the response that says why that failed. */
export async function beginSession(
  exchange: McpExchange,
  asked: McpRequest,
  onAbandon: OnAbandon,
): Promise<BegunSession | RespondVerdict> {
  exchange.describe(asked.method)
  const chains = chainsFor(exchange, 'legacy', asked.method)
  if (chains.length === 0) return beginChecked(exchange, asked, onAbandon)
  const request = await checkRequest(chains, asked)
  if (!('kind' in request)) return jsonResponse(request.text)
  const begun = await beginChecked(exchange, request, onAbandon)
  if ('kind' in begun) return begun
  const { text } = await checkResponse(chains, request, begun)
  const isRefused = errorCodeOf(text) !== undefined
  if (!isRefused) return { ...begun, text }
  endSessions(exchange, begun.state, new Map())
  return jsonResponse(text)
}

async function beginChecked(
  exchange: McpExchange,
  asked: McpRequest,
  onAbandon: OnAbandon,
): Promise<BegunSession | RespondVerdict> {
  const request = withKnownVersion(asked)
  const wanted = versionFor(requestedVersion(request))
  const held: OpenConnections = new Map()
  const begun = await beginAll(exchange, request, onAbandon, held)
  const [first] = begun.values()
  if (exchange.only !== undefined && first !== undefined) {
    if ('message' in first) return verdictOf(first, request.id)
    if (first.response.error !== undefined) {
      const { response, status } = first
      return jsonResponse(response.text, [], status)
    }
  }
  const good = new Map([...begun].flatMap(([name, one]) => ('result' in one ? [[name, one]] : [])))
  const missing = [...begun.keys()].filter((name) => !good.has(name))
  if (good.size === 0 || (missing.length > 0 && exchange.backend.isFailClosed)) {
    if (good.size > 0) endSessions(exchange, stateOf(exchange, request, wanted, good), held)
    return notBegun(request, begun, missing)
  }
  const results = new Map([...good].map(([name, { result }]) => [name, result]))
  const { shared } = exchange
  const merged = mergeInitializeResults(results, {
    version: shared.version,
    wanted,
    missing,
    prefixMode: exchange.backend.prefixMode,
  })
  const [only] = exchange.only ? good.values() : []
  const text =
    only === undefined
      ? resultText(request.id, merged.result)
      : inSupportedVersion(only.response, wanted)
  const stated = only?.session.version ?? merged.version
  const version = legacyVersions.includes(stated) ? stated : wanted
  const state = stateOf(exchange, request, version, good)
  if (held.size > 0) for (const [name, one] of held) shared.live(state).held.set(name, one)
  return { text, state }
}

/** The response if servers are missing; if the user could allow access to one, where to do so. */
function notBegun(
  { id }: McpRequest,
  begun: ReadonlyMap<string, BeginResult>,
  missing: readonly string[],
): RespondVerdict {
  for (const one of begun.values()) {
    if (one instanceof TargetFailure && one.consent !== undefined) return verdictOf(one, id)
  }
  const message = `servers could not be reached: ${missing.join(', ')}`
  return jsonRefusal(503, id, codes.internal, message, { reason: 'NoHealthyBackend' })
}

/** Ends sessions whose client did not get the response that begins them. */
function endSessions(exchange: McpExchange, state: SessionState, held: OpenConnections): void {
  for (const [name, one] of held) exchange.shared.live(state).held.set(name, one)
  void endEverywhere(new ClientSession(exchange, state))
}

type BeginResult = InitializedSession | TargetFailure

/** Initializes every target. Results are by target name, in the order of the targets. */
async function beginAll(
  exchange: McpExchange,
  request: McpRequest,
  onAbandon: OnAbandon,
  held: OpenConnections,
): Promise<ReadonlyMap<string, BeginResult>> {
  const isOnly = exchange.only !== undefined
  const one = async (entry: McpTargetEntry): Promise<[string, BeginResult]> => {
    const { name } = entry.target
    const limitMs = isOnly || hasTimeout(exchange, entry) ? 0 : ownLimitMs
    try {
      const begun = await begin(exchange, entry, request, onAbandon, held, limitMs)
      const isRefused = begun.response.error !== undefined && !isOnly
      if (isRefused) return [name, new TargetFailure('the server refuses to initialize')]
      const response = await guardInstructions(exchange, entry, begun.response)
      if (response === begun.response) return [name, begun]
      return [name, { ...begun, response, result: readInitializeResult(response) }]
    } catch (thrown) {
      return [name, toFailure(thrown)]
    }
  }
  return new Map(await Promise.all(exchange.backend.targets.map(one)))
}

function stateOf(
  exchange: McpExchange,
  request: McpRequest,
  version: string,
  begun: ReadonlyMap<string, InitializedSession>,
): SessionState {
  const targets: Record<string, TargetSession> = {}
  for (const [target, { session }] of begun) targets[target] = session
  const { principal } = exchange
  return {
    id: newId(),
    backend: exchange.name,
    principal,
    version,
    hello: keptParams(request.text, request.params),
    targets,
  }
}
