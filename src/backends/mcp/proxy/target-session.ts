/** Sessions at targets. They begin with the client's `initialize` params, and are begun again if lost. */
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { codes, errorCodeOf, notificationText, requestText } from '../answers.ts'
import { askedVersion, readHello, type ServerHello } from '../eras/initialize.ts'
import { capabilitiesIn, declares } from '../eras/server-requests.ts'
import { helloOfModern } from '../eras/to-modern.ts'
import { versionFor } from '../eras/versions.ts'
import { type McpRequest, type McpResponse, readMessage } from '../message.ts'
import type { SessionState, TargetSession } from '../session-state.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { ModernTarget } from './modern-target.ts'
import { jsonRefusal, lostSession, otherClient, TargetFailure, toFailure } from './refusals.ts'
import { heldConnection, type OpenConnections, SseTransport } from './sse-connection.ts'
import { legacyWire, StreamableTransport } from './streamable.ts'
import {
  findEra,
  forgetEra,
  isErrorOfModern,
  isRefusedByEra,
  isRefusedByModern,
  knownEra,
  noteHello,
  noteNoSessions,
} from './target-eras.ts'
import {
  ask,
  ignored,
  type OnAbandon,
  type OutgoingRequest,
  type ReceivedResponse,
  type Transport,
} from './transport.ts'
import type { Upstreams } from './upstreams.ts'

/** Returns the id of a request that the gateway sends by itself, as JSON. */
const ownId = (what: string): string => JSON.stringify(`sluice/${what}`)

export interface InitializedSession {
  readonly session: TargetSession
  readonly hello: ServerHello
  readonly response: McpResponse
}

/**
 * Makes the transport. `session` is undefined for `initialize`; `held` has the open connections of the
 * session.
 */
function transportOf(
  exchange: McpExchange,
  entry: McpTargetEntry,
  session: TargetSession | undefined,
  held: OpenConnections,
  state?: SessionState,
): Transport {
  if (session?.isModern === true && state !== undefined) {
    return new ModernTarget(exchange, entry, state)
  }
  if (entry.target.protocol === 'SSE') {
    return new SseTransport(exchange, entry, held, session === undefined)
  }
  return new StreamableTransport(exchange, entry, legacyWire(session))
}

/** Sends `initialize`. If the server answers with a JSON-RPC error, there is no session. */
export async function begin(
  exchange: McpExchange,
  entry: McpTargetEntry,
  request: OutgoingRequest,
  onAbandon: OnAbandon,
  held: OpenConnections,
): Promise<InitializedSession> {
  if (knownEra(entry)?.hasNoSessions) return beginModern(exchange, entry, request, onAbandon)
  const transport = transportOf(exchange, entry, undefined, held)
  const asked = await ask(transport, request, ignored, onAbandon).catch((thrown) =>
    toFailure(thrown),
  )
  if (asked instanceof TargetFailure) {
    if (!isRefusedByEra(asked)) throw asked
    return beginModern(exchange, entry, request, onAbandon, asked)
  }
  const { response, session: id } = asked
  if (await prefersModern(exchange, entry, asked, onAbandon)) {
    return beginModern(exchange, entry, request, onAbandon)
  }
  if (response.error === undefined) noteHello(entry, response)
  const hello = readHello(response)
  const { endpoint } = transport
  const session: TargetSession = {
    id,
    endpoint,
    version: hello.version,
    can: Object.keys(hello.capabilities),
  }
  return { session, hello, response }
}

/**
 * Returns true if a legacy client should use the server in the modern era. A server without session ids cannot send
 * requests and notifications in the legacy era, even if it supports that era.
 */
async function prefersModern(
  exchange: McpExchange,
  entry: McpTargetEntry,
  { response, session }: ReceivedResponse,
  onAbandon: OnAbandon,
): Promise<boolean> {
  if (entry.target.protocol === 'SSE' || session !== undefined) return false
  const isError = response.error !== undefined
  const mayBeModern =
    isErrorOfModern(response) || errorCodeOf(response.text) === codes.methodNotFound
  if (isError && !mayBeModern) return false
  try {
    return (await findEra(exchange, entry, onAbandon)).era === 'modern'
  } catch (thrown) {
    toFailure(thrown)
    return false
  }
}

/**
 * Answers `initialize` for a server without sessions. `refusal` is how it refused the request; if the server
 * is not modern, that is the result.
 */
async function beginModern(
  exchange: McpExchange,
  entry: McpTargetEntry,
  request: OutgoingRequest,
  onAbandon: OnAbandon,
  refusal?: TargetFailure,
): Promise<InitializedSession> {
  const { discovered } = await findEra(exchange, entry, onAbandon)
  if (discovered === undefined) {
    throw refusal ?? new TargetFailure('the server has changed its version')
  }
  noteNoSessions(entry)
  const asked = readMessage(request.text)
  const version = versionFor(asked.kind === 'request' ? askedVersion(asked) : undefined)
  const response = readMessage(helloOfModern(request.id, version, discovered))
  if (response.kind !== 'response') throw new TargetFailure('the server offers nothing')
  const hello = readHello(response)
  const can = Object.keys(hello.capabilities)
  return { session: { version, can, isModern: true }, hello, response }
}

/** Begins a session at a target with the params that the client sent earlier. */
async function beginQuietly(
  exchange: McpExchange,
  entry: McpTargetEntry,
  hello: string,
  held: OpenConnections,
): Promise<TargetSession> {
  const id = ownId('initialize')
  const request = { text: requestText(id, 'initialize', hello), id, method: 'initialize' }
  // Other requests may use the session, so this request must not cancel it.
  const begun = await begin(exchange, entry, request, never, held)
  if (begun.response.error !== undefined) {
    throw new TargetFailure('the server refuses to initialize a session')
  }
  if (begun.session.isModern !== true) {
    await notify(transportOf(exchange, entry, begun.session, held), initialized)
  }
  return begun.session
}

const initialized = notificationText('notifications/initialized')
const never: OnAbandon = () => {}

/** Sends a message that needs no response. Rejects with a TargetFailure or a GatewayError. */
export function notify(transport: Transport, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // Some servers answer an accepted notification with a stream, so its start counts as acceptance.
    const listener = { onStream: resolve, onEnd: resolve, onFailure: reject }
    const flow = transport.post({ text }, listener)
    if (flow instanceof Promise) flow.catch(reject)
  })
}

/** A session of a client and its sessions at the targets. */
export class ClientSession implements Upstreams {
  readonly era = 'legacy'
  readonly exchange: McpExchange
  readonly state: SessionState

  constructor(exchange: McpExchange, state: SessionState) {
    this.exchange = exchange
    this.state = state
    // The state of a stateless backend belongs to this request alone.
    exchange.sessionId = exchange.backend.isStateless ? undefined : state.id
  }

  /** Open connections of the client's session. */
  get held(): OpenConnections {
    return this.exchange.hub.live(this.state).held
  }

  transport(entry: McpTargetEntry, session: TargetSession): Transport {
    const held = entry.target.protocol === 'SSE' ? this.held : noneHeld
    return transportOf(this.exchange, entry, session, held, this.state)
  }

  #known(target: string): TargetSession | Promise<TargetSession> | undefined {
    const live = this.exchange.hub.known(this.state)
    return live?.targets.get(target) ?? this.state.targets[target]
  }

  /** Does the target have a session? */
  has(target: string): boolean {
    return this.#known(target) !== undefined
  }

  /** Returns the capabilities of the target; undefined if they are not known yet. */
  can(target: string): readonly string[] | undefined {
    const known = this.#known(target)
    return known instanceof Promise ? undefined : known?.can
  }

  mayAsk(request: McpRequest): boolean {
    if (this.exchange.backend.isStateless) return false
    return declares(request, capabilitiesIn(this.state.hello))
  }

  at(entry: McpTargetEntry): TargetSession | Promise<TargetSession> {
    const known = this.#known(entry.target.name)
    if (known === undefined || known instanceof Promise) {
      return known ?? this.#renew(entry, undefined)
    }
    // A session of the older transport ends with its stream, which must be open in this thread.
    const isLost = entry.target.protocol === 'SSE' && !heldConnection(this.held, entry)
    return isLost ? this.#renew(entry, known) : known
  }

  /**
   * Uses the transport of a target. If the server has lost its session but another server has not, the lost
   * session is begun again. If no server has its session, rejects with SessionEnded.
   */
  use<Result>(
    entry: McpTargetEntry,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    const known = this.at(entry)
    return known instanceof Promise
      ? known.then((session) => this.#useSession(entry, session, act))
      : this.#useSession(entry, known, act)
  }

  #useSession<Result>(
    entry: McpTargetEntry,
    session: TargetSession,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    return act(this.transport(entry, session)).catch(async (thrown: unknown) => {
      await this.#requireRenewable(entry, session, toFailure(thrown))
      return act(this.transport(entry, await this.#renew(entry, session)))
    })
  }

  /** Throws unless a session may be begun again after the failure. */
  async #requireRenewable(
    entry: McpTargetEntry,
    session: TargetSession,
    failure: TargetFailure,
  ): Promise<void> {
    if (isOutdated(session, failure)) {
      forgetEra(entry)
      return
    }
    if (!failure.isSessionLost || session.id === undefined) throw failure
    if (!(await this.#livesElsewhere(entry))) throw new SessionEnded(this.state)
  }

  /** Begins a lost session again. Concurrent requests that notice the loss share the new session. */
  #renew(
    entry: McpTargetEntry,
    lost: TargetSession | undefined,
  ): TargetSession | Promise<TargetSession> {
    const { name } = entry.target
    const { targets, held } = this.exchange.hub.live(this.state)
    const known = targets.get(name)
    if (known !== undefined && known !== lost) return known
    const pending = beginQuietly(this.exchange, entry, this.state.hello, held)
    targets.set(name, pending)
    pending.then(
      (session) => targets.set(name, session),
      () => targets.delete(name),
    )
    return pending
  }

  /** Does another server still have its session? Asks one server after the other. */
  async #livesElsewhere({ target }: McpTargetEntry): Promise<boolean> {
    const id = ownId('ping')
    const ping = { text: requestText(id, 'ping', '{}'), id, method: 'ping' }
    for (const entry of this.exchange.backend.targets) {
      const { name } = entry.target
      if (name === target.name) continue
      const known = this.state.targets[name]
      if (known?.id === undefined) continue
      const session = await this.at(entry)
      try {
        await ask(this.transport(entry, session), ping, ignored, never)
        return true
      } catch (thrown) {
        toFailure(thrown)
      }
    }
    return false
  }
}

/** Returns true if the failure shows that the server now supports only the other era. It has not served the request. */
const isOutdated = (session: TargetSession, failure: TargetFailure): boolean =>
  session.isModern === true ? isRefusedByEra(failure) : isRefusedByModern(failure)

const noneHeld: OpenConnections = new Map()

/** Finds the session of a request, or returns the response that refuses the request. */
export function findSession(exchange: McpExchange): ClientSession | RespondVerdict {
  const { hub, name, client } = exchange
  const id = client.request.headers.get('mcp-session-id')
  if (id === undefined) {
    const message = 'Bad Request: session header is required for non-initialize requests'
    return jsonRefusal(400, undefined, codes.invalidRequest, message)
  }
  const state = hub.open(id, name)
  // Other clients get the same response as for a session that does not exist.
  if (state === undefined) return lostSession()
  if (state.principal !== exchange.principal) return lostSession(otherClient)
  return new ClientSession(exchange, state)
}

/** Ends the sessions at all targets. Never rejects. */
export async function endEverywhere(session: ClientSession): Promise<void> {
  const { exchange, state } = session
  const { hub } = exchange
  const targets = new Map<string, TargetSession | Promise<TargetSession>>([
    ...Object.entries(state.targets),
    ...(hub.known(state)?.targets ?? []),
  ])
  const held = hub.known(state)?.held ?? noneHeld
  const entries = hub.backends.find(exchange.name)?.targets ?? []
  await Promise.all(
    entries.map(async (entry) => {
      const known = await Promise.resolve(targets.get(entry.target.name)).catch(() => undefined)
      if (known !== undefined) await transportOf(exchange, entry, known, held, state).end()
    }),
  )
  hub.forget(state.id)
}

/** Thrown if no server has the session any more. The client must begin another session. */
export class SessionEnded extends Error {
  override readonly name = 'SessionEnded'
  readonly state: SessionState

  constructor(state: SessionState) {
    super('no server has the session')
    this.state = state
  }
}
