/** Sessions at targets: begun with what the client has said of itself, and renewed when lost. */
import { notificationText, requestText } from '../answers.ts'
import { readHello, type ServerHello } from '../initialize.ts'
import type { McpResponse } from '../message.ts'
import type { SessionState, TargetSession } from '../session-state.ts'
import { TargetFailure, toFailure } from './failure.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { type Held, heldConnection, SseTransport } from './sse-connection.ts'
import { StreamableTransport } from './streamable.ts'
import { type Abandon, ask, ignored, type Transport } from './transport.ts'

/** The gateway's own ids, which no client can have: theirs are passed on as they are. */
const ownId = (what: string): string => JSON.stringify(`sluice/${what}`)

export interface Begun {
  readonly session: TargetSession
  readonly hello: ServerHello
  readonly response: McpResponse
  readonly transport: Transport
}

/** `session`: undefined where it is about to begin. `held`: what the client's session holds. */
function transportOf(
  exchange: McpExchange,
  entry: McpTargetEntry,
  session: TargetSession | undefined,
  held: Held,
): Transport {
  if (entry.target.protocol === 'SSE') {
    return new SseTransport(exchange, entry, held, session === undefined)
  }
  return new StreamableTransport(exchange, entry, session)
}

/**
 * Sends `initialize`. Rejects with a TargetFailure or a GatewayError; an error of JSON-RPC is an
 * answer without a session.
 */
export async function begin(
  exchange: McpExchange,
  entry: McpTargetEntry,
  request: { readonly text: string; readonly id: string },
  abandon: Abandon,
  held: Held,
): Promise<Begun> {
  const transport = transportOf(exchange, entry, undefined, held)
  const { response, session: id } = await ask(transport, request, ignored, abandon)
  const hello = readHello(response)
  const { endpoint } = transport
  const session: TargetSession = {
    ...(id !== undefined && { id }),
    ...(endpoint !== undefined && { endpoint }),
    version: hello.version,
    can: Object.keys(hello.capabilities),
  }
  return { session, hello, response, transport }
}

/** A session that begins behind the client's back, as the client would have begun it. */
async function beginQuietly(
  exchange: McpExchange,
  entry: McpTargetEntry,
  hello: string,
  held: Held,
): Promise<TargetSession> {
  const id = ownId('initialize')
  const request = { text: requestText(id, 'initialize', hello), id }
  // It is everybody's who uses the session: not this client's alone to give up.
  const begun = await begin(exchange, entry, request, never, held)
  if (begun.response.error !== undefined) {
    throw new TargetFailure('the server refuses to initialize a session')
  }
  await tell(transportOf(exchange, entry, begun.session, held), initialized)
  return begun.session
}

const initialized = notificationText('notifications/initialized')
const never: Abandon = { onAbandon: () => {} }

/** Sends what needs no answer. Rejects with a TargetFailure or a GatewayError. */
export function tell(transport: Transport, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const listener = {
      // Some servers answer a notification with a stream: it was taken.
      onStream: resolve,
      onMessage: () => {},
      onEvent: () => {},
      onEnd: resolve,
      onFailure: reject,
    }
    transport.post(text, listener).catch(reject)
  })
}

/** A session of a client, as it stands at its targets. */
export class ClientSession {
  readonly exchange: McpExchange
  readonly state: SessionState

  constructor(exchange: McpExchange, state: SessionState) {
    this.exchange = exchange
    this.state = state
    // Without sessions the state is of this request alone, and means nothing to anybody else.
    exchange.sessionId = exchange.backend.isStateless ? undefined : state.id
  }

  /** Connections that the session holds. */
  get held(): Held {
    return this.exchange.hub.live(this.state).held
  }

  transport(entry: McpTargetEntry, session: TargetSession): Transport {
    const held = entry.target.protocol === 'SSE' ? this.held : noneHeld
    return transportOf(this.exchange, entry, session, held)
  }

  #known(target: string): TargetSession | Promise<TargetSession> | undefined {
    const live = this.exchange.hub.known(this.state)
    return live?.targets.get(target) ?? this.state.targets[target]
  }

  /** Has the session been begun at the target? */
  has(target: string): boolean {
    return this.#known(target) !== undefined
  }

  /** What the target says that it can do; undefined where it was not asked yet. */
  can(target: string): readonly string[] | undefined {
    const known = this.#known(target)
    return known instanceof Promise ? undefined : known?.can
  }

  at(entry: McpTargetEntry): TargetSession | Promise<TargetSession> {
    const known = this.#known(entry.target.name)
    if (known === undefined || known instanceof Promise) {
      return known ?? this.#renew(entry, undefined)
    }
    // A session of the older transport lives as long as its stream, in this thread.
    const isLost = entry.target.protocol === 'SSE' && !heldConnection(this.held, entry)
    return isLost ? this.#renew(entry, known) : known
  }

  /**
   * Does something at a target. A session that the server has lost is begun again where the client's
   * session lives on at another target; else it has ended, and the client is told so (404).
   */
  async use<Result>(
    entry: McpTargetEntry,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    const session = await this.at(entry)
    try {
      return await act(this.transport(entry, session))
    } catch (thrown) {
      const failure = toFailure(thrown)
      if (!failure.isSessionLost || session.id === undefined) throw failure
      if (!(await this.#livesElsewhere(entry))) throw new SessionEnded()
      return act(this.transport(entry, await this.#renew(entry, session)))
    }
  }

  /** Many may find out at once that a session is lost; it is begun once. */
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

  /** Is there another server that still knows its session? Asked one after the other. */
  async #livesElsewhere({ target }: McpTargetEntry): Promise<boolean> {
    const id = ownId('ping')
    const ping = { text: requestText(id, 'ping', '{}'), id }
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

const noneHeld: Held = new Map()

/** Ends what a session has at its targets. Never rejects. */
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
      if (known !== undefined) await transportOf(exchange, entry, known, held).end()
    }),
  )
  hub.drop(state)
}

/** No server knows the session any more: the client has to begin another one. */
export class SessionEnded extends Error {
  override readonly name = 'SessionEnded'
}
