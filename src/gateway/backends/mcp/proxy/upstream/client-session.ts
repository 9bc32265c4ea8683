/** The session of a client: its sessions at the targets, which are begun again if they are lost. */
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { capabilitiesIn, declares } from '../../eras/server-requests.ts'
import { gatewayRequestId } from '../../ids.ts'
import { codes } from '../../json-rpc.ts'
import type { McpRequest } from '../../message.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { jsonRefusal, lostSession, otherClient } from '../exchange/refusals.ts'
import type { SessionState, TargetSession } from '../session/session-state.ts'
import { isGoneStatus, TargetFailure, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { askQuietly, gatewayRequest, never, type SessionTransport } from '../target/transport.ts'
import { heldConnection, type OpenConnections } from '../transport/sse-connection.ts'
import { beginQuietly, transportOf } from './begin-session.ts'
import { isAlive, type MessageKind, refusedInSession } from './lost-session.ts'
import { findEra, forgetEra, isRefusedByEra, isRefusedByModern } from './target-eras.ts'
import type { Upstreams } from './upstreams.ts'

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
    return this.exchange.shared.live(this.state).held
  }

  transport(entry: McpTargetEntry, session: TargetSession): SessionTransport {
    const held = entry.target.protocol === 'SSE' ? this.held : noneHeld
    return transportOf(this.exchange, entry, session, held, this.state)
  }

  #known(target: string): TargetSession | Promise<TargetSession> | undefined {
    const { shared } = this.exchange
    const live = shared.known(this.state)?.targets.get(target)
    const later = live ?? shared.targetSessions.find(this.state.id, target)
    return later ?? this.state.targets[target]
  }

  /** Whether the target has a session. */
  has(target: string): boolean {
    return this.#known(target) !== undefined
  }

  /** Returns the capabilities of the target; undefined if they are not known yet. */
  can(target: string): readonly string[] | undefined {
    const known = this.#known(target)
    return known instanceof Promise ? undefined : known?.can
  }

  get capabilities(): unknown {
    return capabilitiesIn(this.state.hello)
  }

  mayAsk(request: McpRequest): boolean {
    if (this.exchange.backend.isStateless) return false
    return declares(request, this.capabilities)
  }

  at(entry: McpTargetEntry): TargetSession | Promise<TargetSession> {
    const known = this.#known(entry.target.name)
    if (known === undefined || known instanceof Promise) {
      return known ?? this.#renew(entry, undefined)
    }
    const isHere = entry.target.protocol !== 'SSE' || heldConnection(this.held, entry)
    return isHere ? known : this.#atStream(entry, known)
  }

  /** Returns the session of the older transport if its stream is open in another thread. Otherwise begins another. */
  async #atStream(entry: McpTargetEntry, known: TargetSession): Promise<TargetSession> {
    const { connection } = known
    const { sharedStreams } = this.exchange.shared
    const found = connection && (await sharedStreams.find(connection, this.state.id))
    return found ? known : this.#renew(entry, known)
  }

  /**
   * Uses the transport of a target. If the server has lost its session but another server has not, the lost
   * session is begun again. If no server has its session, rejects with SessionEnded.
   */
  use<Result>(
    entry: McpTargetEntry,
    act: (transport: SessionTransport) => Promise<Result>,
    what: MessageKind = 'request',
  ): Promise<Result> {
    const known = this.at(entry)
    return known instanceof Promise
      ? known.then((session) => this.#useSession(entry, session, act, what))
      : this.#useSession(entry, known, act, what)
  }

  #useSession<Result>(
    entry: McpTargetEntry,
    session: TargetSession,
    act: (transport: SessionTransport) => Promise<Result>,
    what: MessageKind,
  ): Promise<Result> {
    return act(this.transport(entry, session)).catch(async (thrown: unknown) => {
      const failure = toFailure(thrown)
      await this.#requireRenewable(entry, session, failure, what)
      if (what === 'response') throw lostInSession('the question is lost')
      if (what === 'resumption') throw lostInSession('the stream is lost')
      const renewed = await this.#renew(entry, session)
      if (!this.#mayRepeat(failure)) {
        throw new TargetFailure('the server has lost its session, so the call may not have run')
      }
      return act(this.transport(entry, renewed))
    })
  }

  /** Only some refusals prove that a call was not executed: 404, and those of a server of the other era. */
  #mayRepeat({ httpResponse }: TargetFailure): boolean {
    const { method } = this.exchange.details ?? {}
    if (method !== 'tools/call' || httpResponse === undefined) return true
    return isGoneStatus(httpResponse.status) || isRefusedByModern(httpResponse)
  }

  /** Throws unless a session may be begun again after the failure. */
  async #requireRenewable(
    entry: McpTargetEntry,
    session: TargetSession,
    failure: TargetFailure,
    what: MessageKind,
  ): Promise<void> {
    if (isOutdated(session, failure)) {
      forgetEra(entry)
      const { era } = await findEra(this.exchange, entry, never)
      if ((era === 'modern') === (session.isModern === true)) throw this.#refused(failure, what)
      return
    }
    if (!failure.mayHaveLostSession) throw failure
    if (session.id === undefined) throw this.#refused(failure, what)
    const alive = await isAlive(this.transport(entry, session))
    // If the server does not say, only the 404 to a request counts.
    const isTaken =
      alive ?? !(what === 'request' && isGoneStatus(failure.httpResponse?.status ?? 0))
    if (isTaken) throw this.#refused(failure, what)
    if (!(await this.#livesElsewhere(entry))) throw new SessionEnded(this.state)
    // A session that is gone for one of its messages may still take up room.
    if (alive === undefined) void this.transport(entry, session).end()
  }

  /** Returns the failure of a message in a session that still exists. */
  #refused(failure: TargetFailure, what: MessageKind): TargetFailure {
    // A client without a session cannot take a status for the end of it.
    return this.exchange.sessionId === undefined ? failure : refusedInSession(failure, what)
  }

  /** Begins a lost session again. Concurrent requests that notice the loss share the new session. */
  #renew(
    entry: McpTargetEntry,
    lost: TargetSession | undefined,
  ): TargetSession | Promise<TargetSession> {
    const { name } = entry.target
    const { targets, held } = this.exchange.shared.live(this.state)
    const known = targets.get(name)
    if (known !== undefined && known !== lost) return known
    const begin = async () => {
      const { session } = await beginQuietly(this.exchange, entry, this.state.hello, held)
      const uris = await this.#replay(entry, session)
      const { sessionId, shared } = this.exchange
      if (sessionId !== undefined) shared.notices.reportRenewed(sessionId, name, uris)
      return session
    }
    const isOwn = this.exchange.sessionId === undefined
    const { targetSessions } = this.exchange.shared
    const pending = isOwn ? begin() : targetSessions.begin(this.state.id, name, lost, begin)
    targets.set(name, pending)
    pending.then(
      (session) => targets.set(name, session),
      () => targets.delete(name),
    )
    return pending
  }

  /**
   * Repeats the client's settings in a new session. A server may refuse them. Resolves to the
   * resources of the target to which the client has subscribed.
   */
  async #replay(entry: McpTargetEntry, session: TargetSession): Promise<readonly string[]> {
    const { settings } = this.exchange.shared
    const uris = settings.uris(this.state.id, entry.target.name)
    // Each request to a modern server has the settings of the client.
    if (session.isModern === true) return uris
    const all: [method: string, params: object][] = uris.map((uri) => [
      'resources/subscribe',
      { uri },
    ])
    const level = settings.logLevel(this.state.id)
    if (level !== undefined && session.can.includes('logging'))
      all.push(['logging/setLevel', { level }])
    const transport = this.transport(entry, session)
    const asked = all.map(async ([method, params], at) => {
      const id = gatewayRequestId(`replay ${at}`)
      await askQuietly(transport, gatewayRequest(method, JSON.stringify(params), id)).catch(
        toFailure,
      )
    })
    await Promise.all(asked)
    return uris
  }

  /** Whether another server still has its session. */
  async #livesElsewhere({ target }: McpTargetEntry): Promise<boolean> {
    const others = this.exchange.backend.targets.filter(
      ({ target: { name } }) => name !== target.name && this.state.targets[name]?.id !== undefined,
    )
    const asked = others.map(async (entry) => {
      const session = await Promise.resolve(this.at(entry)).catch(toFailure)
      const alive =
        session instanceof TargetFailure ? false : await isAlive(this.transport(entry, session))
      // Only a session that exists settles the question at once.
      if (alive !== true) throw new TargetFailure('the session does not exist')
    })
    return await Promise.any(asked).then(
      () => true,
      () => false,
    )
  }
}

/** Whether the failure shows that the server now supports only the other era. It has not served the request. */
const isOutdated = (session: TargetSession, failure: TargetFailure): boolean =>
  session.isModern === true ? isRefusedByEra(failure) : isRefusedByModern(failure.httpResponse)

/**
 * The server has forgotten what it asked, and another question of its next session may have the same id. The same
 * applies to streams and their events.
 */
const lostInSession = (why: string) => new TargetFailure(why, { isInSession: true })

const noneHeld: OpenConnections = new Map()

/** Finds the session of a request, or returns the response that refuses the request. */
export function findSession(exchange: McpExchange): ClientSession | RespondVerdict {
  const { shared, name, client } = exchange
  const id = client.request.headers.lines('mcp-session-id')
  if (typeof id !== 'string') {
    const message =
      id === undefined
        ? 'Bad Request: session header is required for non-initialize requests'
        : 'Bad Request: there is more than one header Mcp-Session-Id'
    return jsonRefusal(400, undefined, codes.invalidRequest, message)
  }
  const state = shared.open(id, name)
  // Other clients get the same response as for a session that does not exist.
  if (state === undefined) return lostSession()
  if (state.principal !== exchange.principal) return lostSession(otherClient)
  return new ClientSession(exchange, state)
}

/** Ends the sessions at all targets. Never rejects. */
export async function endEverywhere(session: ClientSession): Promise<void> {
  const { exchange, state } = session
  const { shared } = exchange
  const targets = new Map<string, TargetSession | Promise<TargetSession>>([
    ...Object.entries(state.targets),
    ...(shared.known(state)?.targets ?? []),
  ])
  const held = shared.known(state)?.held ?? noneHeld
  const entries = shared.backends.find(exchange.name)?.targets ?? []
  await Promise.all(
    entries.map(async (entry) => {
      const known = await Promise.resolve(targets.get(entry.target.name)).catch(() => undefined)
      if (known !== undefined) await transportOf(exchange, entry, known, held, state).end()
    }),
  )
  shared.forget(state.id)
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
