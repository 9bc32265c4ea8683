/** A client of the modern era: its requests are independent, and none belongs to a session. */
import { hash } from 'node:crypto'
import { ExpiringMap } from '../../../../../ground/base/bounded-map.ts'
import type { ModernMessage } from '../../eras/detect-era.ts'
import { readEnvelope } from '../../eras/envelope.ts'
import {
  initializeParamsOf,
  inputResponsesIn,
  requestStateIn,
} from '../../eras/modern-to-legacy.ts'
import { declares } from '../../eras/server-requests.ts'
import { latestLegacyVersion } from '../../eras/versions.ts'
import { newId } from '../../ids.ts'
import { jsonValue } from '../../json/node.ts'
import type { McpRequest, McpResponse } from '../../message.ts'
import type { ProtocolEra } from '../../methods.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { SessionState } from '../session/session-state.ts'
import { SessionNeeded, TargetFailure, toFailure } from '../target/target-failure.ts'
import { type McpTargetEntry, sharesProcess, TargetMemory } from '../target/targets.ts'
import type { OnAbandon, Transport } from '../target/transport.ts'
import type { OpenConnections } from '../transport/sse-connection.ts'
import { beginQuietly, type InitializedSession } from './begin-session.ts'
import { ClientSession, endEverywhere, SessionEnded } from './client-session.ts'
import { LegacyTarget } from './legacy-target.ts'
import { ModernTarget } from './modern-target.ts'
import { modernTransport } from './modern-transport.ts'
import {
  findEra,
  forgetEra,
  hadSessions,
  hasSessions,
  isRefusedByEra,
  knownDiscoverResult,
  knownEra,
} from './target-eras.ts'
import type { Upstreams } from './upstreams.ts'

/** How long a response to `initialize` is used for other requests. */
const keptMs = 5 * 60_000
/** Maximum number of clients of a target. */
const maxClients = 256

/**
 * Responses to `initialize` of legacy servers that give no session ids, by a digest of everything by which a server may
 * tell a client from others.
 */
const initializedTargets = new TargetMemory(
  () => new ExpiringMap<string, InitializedSession>(maxClients, keptMs),
)

export class ModernClient implements Upstreams {
  readonly era = 'modern'
  readonly exchange: McpExchange
  #envelope: ModernMessage['envelope']
  #request: McpRequest
  readonly #onAbandon: OnAbandon

  constructor(
    exchange: McpExchange,
    envelope: ModernMessage['envelope'],
    request: McpRequest,
    onAbandon: OnAbandon,
  ) {
    this.exchange = exchange
    this.#envelope = envelope
    this.#request = request
    this.#onAbandon = onAbandon
  }

  get capabilities(): unknown {
    const { capabilities } = this.#envelope
    return capabilities && jsonValue(this.#request.text, capabilities)
  }

  can(target: string): readonly string[] | undefined {
    const entry = this.exchange.find(target)
    const offer = entry && knownDiscoverResult(this.exchange, entry)
    return offer && Object.keys(offer.capabilities)
  }

  has(): boolean {
    return true
  }

  /** Requests of servers reach the client as results. */
  mayAsk(request: McpRequest): boolean {
    const { capabilities } = this.#envelope
    return declares(request, capabilities && jsonValue(this.#request.text, capabilities))
  }

  replaceRequest(request: McpRequest): void {
    const envelope = readEnvelope(request)
    if (typeof envelope === 'string') return
    this.#request = request
    this.#envelope = envelope
  }

  use<Result>(
    entry: McpTargetEntry,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    const known = knownEra(entry)
    if (known === undefined) return this.#useFound(entry, act)
    const { era } = known
    return this.#useEra(entry, era, act).catch(async (thrown: unknown) => {
      const failure = toFailure(thrown)
      if (!isRefusedByEra(failure)) throw failure
      // The server may have been replaced. It has refused the request, so the request may be repeated.
      forgetEra(entry)
      const now = await this.#findEra(entry)
      if (now.era === era) throw failure
      return this.#useEra(entry, now.era, act)
    })
  }

  async #useFound<Result>(
    entry: McpTargetEntry,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    const { era } = await this.#findEra(entry)
    try {
      return await this.#useEra(entry, era, act)
    } catch (thrown) {
      throw toFailure(thrown)
    }
  }

  #findEra(entry: McpTargetEntry): ReturnType<typeof findEra> {
    return findEra(this.exchange, entry, this.#onAbandon)
  }

  #useEra<Result>(
    entry: McpTargetEntry,
    era: ProtocolEra,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    if (era === 'legacy') return this.#useLegacy(entry, act)
    const { version } = this.#envelope
    return act(modernTransport(this.exchange, entry, version))
  }

  // --- legacy servers ---

  /**
   * Throws a TargetFailure with the error for the client if a target gives each client a session. The client
   * then uses an earlier version. Targets that cannot be asked are not considered.
   */
  async requireNoSessions(): Promise<void> {
    const { backend } = this.exchange
    if (backend.isStateless) return
    await Promise.all(
      backend.targets.map(async (entry) => {
        try {
          if (sharesProcess(entry.target)) return
          if ((await this.#findEra(entry)).era === 'modern') return
          await this.#beginShared(entry)
        } catch (thrown) {
          const failure = toFailure(thrown)
          if (failure instanceof SessionNeeded) throw failure
          if (hadSessions(entry)) throw this.#sessionNeeded(entry)
        }
      }),
    )
  }

  #sessionNeeded({ target }: McpTargetEntry): SessionNeeded {
    return new SessionNeeded(target.name, this.#request.id, this.#envelope.version)
  }

  async #useLegacy<Result>(
    entry: McpTargetEntry,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    const held = requestStateIn(this.#request)
    if (held !== undefined) return act(this.#resuming(entry, held))
    const id = newId()
    // At a command that sessions share, a session costs nothing.
    const isStateless = this.exchange.backend.isStateless || sharesProcess(entry.target)
    const begun = await (isStateless ? this.#begin(entry, id) : this.#beginShared(entry))
    if (begun.session.isModern === true) return this.#useEra(entry, 'modern', act)
    const state = this.#state(id, { [entry.target.name]: begun.session })
    const session = new ClientSession(this.exchange, state)
    this.exchange.sessionId = undefined
    try {
      return await this.#useSession(entry, session, begun.response, act)
    } catch (thrown) {
      if (!(thrown instanceof SessionEnded)) throw thrown
      throw new TargetFailure('the server has lost the session of the request')
    }
  }

  /** Makes a transport that takes a request to the held call of a legacy server, which waits for input. */
  #resuming(entry: McpTargetEntry, held: string): Transport {
    const { calls } = this.exchange.shared
    const responses = [...(inputResponsesIn(this.#request) ?? [])]
    return {
      era: 'modern',
      endpoint: undefined,
      post: ({ text }, listener) =>
        calls.resume(held, this.#owner(entry), { text, responses }, listener),
    }
  }

  async #useSession<Result>(
    entry: McpTargetEntry,
    session: ClientSession,
    initializeResponse: McpResponse,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    let isReleased = false
    const release = () => {
      if (!isReleased) void endEverywhere(session)
      isReleased = true
    }
    const parts = {
      calls: this.exchange.shared.calls,
      envelope: this.#envelope,
      capabilities: this.capabilities,
      owner: this.#owner(entry),
      release,
      initializeResponse,
    }
    try {
      return await session.use(entry, (inner) => {
        // The server has refused to begin a session, because it is modern now.
        if (inner instanceof ModernTarget) return this.#useEra(entry, 'modern', act)
        return act(new LegacyTarget(inner, parts))
      })
    } catch (thrown) {
      release()
      throw thrown
    }
  }

  /** Begins a session for this request alone. */
  #begin(entry: McpTargetEntry, id: string): Promise<InitializedSession> {
    const params = initializeParamsOf(this.#request.text, this.#envelope)
    const isOlder = entry.target.protocol === 'SSE'
    const held: OpenConnections = isOlder ? this.exchange.shared.live({ id }).held : new Map()
    return beginQuietly(this.exchange, entry, params, held)
  }

  /**
   * Initializes a server that gives no session ids. Its requests have nothing in common, so one response to
   * `initialize` serves all requests that look the same to the server. Rejects with SessionNeeded if the server
   * gives a session id, because a client of the modern era cannot keep it.
   */
  async #beginShared(entry: McpTargetEntry): Promise<InitializedSession> {
    if (hasSessions(entry) === true) throw this.#sessionNeeded(entry)
    const params = initializeParamsOf(this.#request.text, this.#envelope)
    const key = digest([this.exchange.identity, params])
    const initialized = initializedTargets.of(entry)
    const known = initialized.get(key)
    if (known !== undefined) return known
    const begun = await this.#begin(entry, newId())
    if (begun.session.isModern === true) return begun
    if (begun.session.id === undefined) {
      initialized.set(key, begun)
      return begun
    }
    const state = this.#state(newId(), { [entry.target.name]: begun.session })
    void endEverywhere(new ClientSession(this.exchange, state))
    this.exchange.sessionId = undefined
    throw this.#sessionNeeded(entry)
  }

  /** Returns a digest of who may continue the call, and of what it uses. */
  #owner(entry: McpTargetEntry): string {
    const { name, identity, details } = this.exchange
    return digest([name, entry.target.name, identity, this.#request.method, details?.item])
  }

  #state(id: string, targets: SessionState['targets']): SessionState {
    return {
      id,
      backend: this.exchange.name,
      version: latestLegacyVersion,
      hello: initializeParamsOf(this.#request.text, this.#envelope),
      targets,
    }
  }
}

const digest = (value: unknown): string => hash('sha256', JSON.stringify(value), 'base64url')
