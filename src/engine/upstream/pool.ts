import type { Socket } from 'node:net'
import type { HttpVersion } from '../../exchange/connection.ts'
import type { PoolState } from '../contracts/engine.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { UpstreamHandler, UpstreamSource, UpstreamStream } from '../contracts/upstream.ts'
import { type ConnectionOwner, UpstreamConnection } from '../http1/upstream-connection.ts'
import { type SessionOwner, UpstreamSession } from '../http2/upstream-session.ts'
import { selectedVersion } from '../sockets/dial.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'

/** Servers whose selection of a version is remembered. */
const keptSelections = 10_000

/** Connections to one address. The one that was used last is used next, so that the rest can age. */
class Pool implements ConnectionOwner, SessionOwner {
  readonly address: UpstreamAddress
  readonly #pools: Pools
  /** Those of HTTP/2 that take requests, and all. */
  readonly #sessions: UpstreamSession[] = []
  readonly #openSessions = new Set<UpstreamSession>()
  readonly #idle: UpstreamConnection[] = []
  readonly #open = new Set<UpstreamConnection>()

  constructor(pools: Pools, address: UpstreamAddress) {
    this.#pools = pools
    this.address = address
  }

  /** An idle connection, or undefined. */
  takeIdle(): UpstreamConnection | undefined {
    return this.#idle.pop()
  }

  opened(connection: UpstreamConnection): void {
    this.#open.add(connection)
  }

  accepts(version: HttpVersion, socket: Socket): boolean {
    if (this.address.negotiates !== true) return true
    const selected = selectedVersion(socket)
    this.#pools.remember(this.address, selected)
    return selected === version
  }

  keep(connection: UpstreamConnection): void {
    this.#idle.push(connection)
  }

  forget(connection: UpstreamConnection): void {
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
  }

  moved(connection: UpstreamConnection, address: UpstreamAddress): Pool {
    const pool = this.#pools.at(address)
    pool.opened(connection)
    this.closed(connection)
    return pool
  }

  closed(connection: UpstreamConnection): void {
    this.#open.delete(connection)
    this.dropIfUnused()
  }

  /** A stream of HTTP/2: on a connection that has room, or on another one. */
  begin(
    parts: EngineParts,
    handler: UpstreamHandler,
    options: ConnectOptions,
    after: UpstreamStream | undefined,
  ): UpstreamStream {
    // Requests that were lost together share the connection that comes after.
    const oldest = after?.serial ?? 0
    let session = this.#sessions.find(({ hasRoom, serial }) => hasRoom && serial > oldest)
    if (session === undefined) {
      session = new UpstreamSession(parts, this, options)
      this.sessionOpened(session)
    }
    return session.begin(handler)
  }

  sessionOpened(session: UpstreamSession): void {
    this.#sessions.push(session)
    this.#openSessions.add(session)
  }

  sessionMoved(session: UpstreamSession, address: UpstreamAddress): Pool {
    const pool = this.#pools.at(address)
    pool.sessionOpened(session)
    this.sessionClosed(session)
    return pool
  }

  sessionLeft(session: UpstreamSession): void {
    const index = this.#sessions.indexOf(session)
    if (index >= 0) this.#sessions.splice(index, 1)
  }

  sessionClosed(session: UpstreamSession): void {
    this.sessionLeft(session)
    this.#openSessions.delete(session)
    this.dropIfUnused()
  }

  /** What is open to the address now. */
  get state(): PoolState {
    const { label, pool } = this.address
    const state = { endpoint: label ?? pool, idle: this.#idle.length, busy: 0, streams: 0 }
    state.busy = this.#open.size - state.idle
    for (const { streamCount } of this.#openSessions) {
      if (streamCount === 0) state.idle++
      else state.busy++
      state.streams += streamCount
    }
    return state
  }

  dropIfUnused(): void {
    if (this.#open.size + this.#openSessions.size === 0) this.#pools.drop(this)
  }

  close(): void {
    for (const connection of [...this.#open]) connection.close()
    for (const session of [...this.#openSessions]) session.shutDown()
  }
}

/** All pools of an engine, by the identity that makes connections interchangeable. */
export class Pools implements UpstreamSource {
  readonly #parts: () => EngineParts
  readonly #pools = new Map<string, Pool>()
  /** What servers selected last, by the identity of their pools, which come and go. */
  readonly #selected = new Map<string, HttpVersion>()

  constructor(parts: () => EngineParts) {
    this.#parts = parts
  }

  acquire(
    address: UpstreamAddress,
    handler: UpstreamHandler,
    options: ConnectOptions,
    after: UpstreamStream | undefined,
  ): UpstreamStream {
    const pool = this.at(address)
    const isHttp2 = address.isHttp2 === true || this.#expectsHttp2(address)
    const isFresh = after !== undefined || options.isLongLived === true
    const idle = isFresh || isHttp2 ? undefined : pool.takeIdle()
    if (idle !== undefined) return idle
    try {
      if (isHttp2) return pool.begin(this.#parts(), handler, options, after)
      const connection = new UpstreamConnection(this.#parts(), pool, handler, options)
      pool.opened(connection)
      return connection
    } finally {
      pool.dropIfUnused()
    }
  }

  /**
   * Is the server likely to select HTTP/2? It is asked for first, so that the requests that wait for
   * the first connection lose only that one if the server selects HTTP/1.1.
   */
  #expectsHttp2({ negotiates, pool }: UpstreamAddress): boolean {
    return negotiates === true && this.#selected.get(pool) !== '1.1'
  }

  /** The server has selected this version; it is likely to do so again. */
  remember({ pool }: UpstreamAddress, version: HttpVersion): void {
    if (this.#selected.get(pool) === version) return
    if (this.#selected.size >= keptSelections) this.#selected.clear()
    this.#selected.set(pool, version)
  }

  /** The pool of an address. */
  at(address: UpstreamAddress): Pool {
    let pool = this.#pools.get(address.pool)
    if (pool === undefined) {
      pool = new Pool(this, address)
      this.#pools.set(address.pool, pool)
    }
    return pool
  }

  states(): PoolState[] {
    return [...this.#pools.values()].map(({ state }) => state)
  }

  drop(pool: Pool): void {
    if (this.#pools.get(pool.address.pool) === pool) this.#pools.delete(pool.address.pool)
  }

  close(): void {
    for (const pool of [...this.#pools.values()]) pool.close()
  }
}
