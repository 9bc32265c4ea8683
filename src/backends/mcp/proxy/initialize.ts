/** `initialize`: the beginning of a session, at every target. */
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { codes, resultText } from '../answers.ts'
import {
  askedVersion,
  helloInVersion,
  helloParams,
  inKnownVersion,
  mergeHellos,
} from '../initialize.ts'
import type { McpRequest } from '../message.ts'
import { newSessionId, type SessionState, type TargetSession } from '../session-state.ts'
import { knownVersions, versionFor } from '../versions.ts'
import { TargetFailure, toFailure } from './failure.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { json, jsonRefusal, verdictOf } from './refusals.ts'
import type { Held } from './sse-connection.ts'
import { type Begun, begin, ClientSession, endEverywhere } from './target-session.ts'
import type { Abandon } from './transport.ts'

export async function serveInitialize(
  exchange: McpExchange,
  request: McpRequest,
): Promise<RespondVerdict | undefined> {
  const closes = new Set<() => void>()
  exchange.notes.onClose(() => {
    for (const close of closes) close()
  })
  const begun = await beginSession(exchange, request, {
    onAbandon: (close) => closes.add(close),
  })
  if (exchange.context.over) return undefined
  if ('kind' in begun) return begun
  const { hub } = exchange
  // Without sessions there is nothing to be brought with what follows.
  if (exchange.backend.isStateless) {
    void endEverywhere(new ClientSession(exchange, begun.state))
    return answer(begun.text, [])
  }
  exchange.sessionId = begun.state.id
  exchange.tell(request.method)
  return answer(begun.text, [['mcp-session-id', hub.seal(begun.state)]])
}

/** A session that has begun, and what its client is told. */
interface BegunSession {
  readonly text: string
  readonly state: SessionState
}

/** Begins a session at all targets, or says why there is none. */
export async function beginSession(
  exchange: McpExchange,
  asked: McpRequest,
  abandon: Abandon,
): Promise<BegunSession | RespondVerdict> {
  exchange.tell(asked.method)
  const request = inKnownVersion(asked)
  const wanted = versionFor(askedVersion(request))
  const held: Held = new Map()
  const begun = await beginAll(exchange, request, abandon, held)
  const { backend } = exchange
  const [first] = begun.values()
  if (backend.targets.length === 1 && first !== undefined) {
    if ('message' in first) return verdictOf(first, request.id)
    if (first.response.error !== undefined) return answer(first.response.text, [])
  }
  const good = new Map([...begun].flatMap(([name, one]) => ('hello' in one ? [[name, one]] : [])))
  const missing = [...begun.keys()].filter((name) => !good.has(name))
  if (good.size === 0) {
    const message = `no server could be reached: ${missing.join(', ')}`
    return jsonRefusal(503, request.id, codes.internal, message, { reason: 'NoHealthyBackend' })
  }
  const hellos = new Map([...good].map(([name, { hello }]) => [name, hello]))
  const { hub } = exchange
  const merged = mergeHellos(hellos, { version: hub.version, wanted, missing })
  const [only] = backend.targets.length === 1 ? good.values() : []
  const text =
    only === undefined
      ? resultText(request.id, merged.result)
      : helloInVersion(only.response, wanted)
  const stated = only?.session.version ?? merged.version
  const version = knownVersions.includes(stated) ? stated : wanted
  const state = stateOf(exchange, request, version, good)
  if (held.size > 0) for (const [name, one] of held) hub.live(state).held.set(name, one)
  return { text, state }
}

type BegunOrNot = Begun | TargetFailure

/** By name, in the order of the targets. */
async function beginAll(
  exchange: McpExchange,
  request: McpRequest,
  abandon: Abandon,
  held: Held,
): Promise<ReadonlyMap<string, BegunOrNot>> {
  const one = async (entry: McpTargetEntry): Promise<[string, BegunOrNot]> => {
    const { name } = entry.target
    try {
      const begun = await begin(exchange, entry, request, abandon, held)
      const isRefused = begun.response.error !== undefined && exchange.backend.targets.length > 1
      return [name, isRefused ? new TargetFailure('the server refuses to initialize') : begun]
    } catch (thrown) {
      return [name, toFailure(thrown)]
    }
  }
  return new Map(await Promise.all(exchange.backend.targets.map(one)))
}

function answer(text: string, headers: readonly (readonly [string, string])[]): RespondVerdict {
  return {
    kind: 'respond',
    status: 200,
    headers: [json, ...headers],
    body: text,
    reason: 'Upstream',
  }
}

function stateOf(
  exchange: McpExchange,
  request: McpRequest,
  version: string,
  begun: ReadonlyMap<string, Begun>,
): SessionState {
  const targets: Record<string, TargetSession> = {}
  for (const [target, { session }] of begun) targets[target] = session
  const { principal } = exchange
  return {
    id: newSessionId(),
    backend: exchange.name,
    ...(principal !== undefined && { principal }),
    version,
    hello: helloParams(request.text, request.params),
    targets,
  }
}
