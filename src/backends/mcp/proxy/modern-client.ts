/** A client of the modern era: its requests are independent, and none belongs to a session. */
import { hash } from 'node:crypto'
import type { ModernMessage } from '../eras/classify.ts'
import { helloOfClient, inputOf, stateOf } from '../eras/to-legacy.ts'
import { latestLegacyVersion } from '../eras/versions.ts'
import { jsonValue } from '../json/node.ts'
import type { McpRequest } from '../message.ts'
import type { Era } from '../methods.ts'
import { newSessionId, type SessionState } from '../session-state.ts'
import { LegacyTarget } from './legacy-target.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { ModernTarget } from './modern-target.ts'
import { toFailure } from './refusals.ts'
import { ResumeTransport } from './resume-transport.ts'
import { modernWire, StreamableTransport } from './streamable.ts'
import { findEra, forgetEra, helloOf, isRefusedByEra, knownEra } from './target-eras.ts'
import { ClientSession, endEverywhere, SessionEnded } from './target-session.ts'
import type { OnAbandon, Transport } from './transport.ts'
import type { Upstreams } from './upstreams.ts'

export class ModernClient implements Upstreams {
  readonly era = 'modern'
  readonly exchange: McpExchange
  readonly #envelope: ModernMessage['envelope']
  readonly #request: McpRequest
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

  can(target: string): readonly string[] | undefined {
    const entry = this.exchange.backend.targets.find((one) => one.target.name === target)
    const discovered = entry && knownEra(entry)?.discovered
    return discovered && Object.keys(discovered.capabilities)
  }

  has(): boolean {
    return true
  }

  /** Servers' requests reach the client as results. */
  mayAsk(): boolean {
    return false
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
    era: Era,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    if (era === 'legacy') return this.#useLegacy(entry, act)
    const { version } = this.#envelope
    return act(new StreamableTransport(this.exchange, entry, modernWire(version)))
  }

  // --- legacy servers ---

  async #useLegacy<Result>(
    entry: McpTargetEntry,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    const owner = this.#owner(entry)
    const held = stateOf(this.#request)
    if (held !== undefined) {
      const { bridge } = this.exchange.hub
      const responses = [...(inputOf(this.#request) ?? [])]
      return act(new ResumeTransport(bridge, { held, owner: owner.call, responses }))
    }
    const session = new ClientSession(this.exchange, this.#state(owner.session))
    this.exchange.sessionId = undefined
    try {
      return await this.#useSession(entry, session, owner, act)
    } catch (thrown) {
      if (!(thrown instanceof SessionEnded)) throw thrown
      this.exchange.hub.forget(session.state.id)
      return this.#useSession(entry, session, owner, act)
    }
  }

  async #useSession<Result>(
    entry: McpTargetEntry,
    session: ClientSession,
    owner: Owner,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    const { capabilities } = this.#envelope
    const isOwn = owner.session === undefined
    let isReleased = !isOwn
    const release = () => {
      if (!isReleased) void endEverywhere(session)
      isReleased = true
    }
    const parts = {
      bridge: this.exchange.hub.bridge,
      envelope: this.#envelope,
      capabilities: capabilities && jsonValue(this.#request.text, capabilities),
      owner: owner.call,
      release,
    }
    try {
      return await session.use(entry, (inner) => {
        // The server has refused to begin a session, because it is modern now.
        if (inner instanceof ModernTarget) return this.#useEra(entry, 'modern', act)
        return act(new LegacyTarget(inner, { ...parts, hello: helloOf(entry) }))
      })
    } catch (thrown) {
      release()
      throw thrown
    }
  }

  /**
   * Requests with the same credentials and the same client share a session; requests without credentials have
   * one each, because their clients cannot be distinguished. Subscriptions have their own as well, because it ends
   * with them.
   */
  #owner(entry: McpTargetEntry): Owner {
    const { client, name, principal } = this.exchange
    const credentials = client.credentials.map((one) => [one, client.request.headers.getAll(one)])
    const who = [name, entry.target.name, principal, credentials]
    const { method, text } = this.#request
    const hello = helloOfClient(text, this.#envelope)
    const isKnown = principal !== undefined || credentials.length > 0
    const isShared = isKnown && method !== 'subscriptions/listen'
    return {
      session: isShared ? digest([...who, hello]) : undefined,
      call: digest([...who, method, this.exchange.details?.item]),
    }
  }

  #state(session: string | undefined): SessionState {
    return {
      id: session ?? newSessionId(),
      backend: this.exchange.name,
      version: latestLegacyVersion,
      hello: helloOfClient(this.#request.text, this.#envelope),
      targets: {},
    }
  }
}

interface Owner {
  /** Id of the session that the request shares with others; undefined if it has its own. */
  readonly session: string | undefined
  /** Digest of who may continue the call, and of what it uses. */
  readonly call: string
}

const digest = (value: unknown): string => hash('sha256', JSON.stringify(value), 'base64url')
