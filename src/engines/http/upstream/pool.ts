import type { Socket } from 'node:net'
import type { HttpVersion } from '../../../ground/exchange/connection.ts'
import type { PoolState } from '../contracts/engine.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type {
  ConnectionOwner,
  UpstreamHandler,
  UpstreamSource,
  UpstreamStream,
} from '../contracts/upstream.ts'
import { IdleLimit } from '../http1/keep-alive.ts'
import { UpstreamConnection } from '../http1/upstream-connection.ts'
import { UpstreamSession } from '../http2/upstream-session.ts'
import { idleTimeoutMs } from '../limits/engine-limits.ts'
import { selectedVersion } from '../sockets/dial.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'

/** Maximum number of servers whose version selection, or idle limit, is remembered. */
const maxRemembered = 10_000

type Connection = UpstreamConnection | UpstreamSession

/** Connections to one address. The last one used is reused first, so that the others can expire. */
class Pool implements ConnectionOwner<Connection> {
  readonly address: UpstreamAddress
  expectedStreams = Number.POSITIVE_INFINITY
  readonly #pools: Pools
  readonly #open = new Set<Connection>()
  /** Connections that can take requests: of HTTP/1.1 (`#idle`), and of HTTP/2 (`#sessions`). */
  readonly #idle: UpstreamConnection[] = []
  readonly #sessions: UpstreamSession[] = []
  #idleLimit: IdleLimit | undefined

  constructor(pools: Pools, address: UpstreamAddress) {
    this.#pools = pools
    this.address = address
    this.#idleLimit = pools.idleLimits.get(address.pool)
  }

  get idleLimitMs(): number {
    return this.#idleLimit?.ms ?? idleTimeoutMs
  }

  closedIdle(since: number): void {
    this.#idleLimit ??= this.#pools.addIdleLimit(this.address)
    this.#idleLimit.onClosed(since, this.#pools.now())
  }

  /** Removes and returns an idle HTTP/1.1 connection; undefined if there is none. */
  takeIdle(): UpstreamConnection | undefined {
    return this.#idle.pop()
  }

  opened(connection: Connection): void {
    this.#open.add(connection)
    if (connection instanceof UpstreamSession) this.keep(connection)
  }

  accepts(version: HttpVersion, socket: Socket): boolean {
    if (this.address.negotiates !== true) return true
    const selected = selectedVersion(socket)
    this.#pools.remember(this.address, selected)
    return selected === version
  }

  keep(connection: Connection): void {
    this.#kept(connection).push(connection)
  }

  forget(connection: Connection): void {
    const kept = this.#kept(connection)
    const index = kept.indexOf(connection)
    if (index >= 0) kept.splice(index, 1)
  }

  #kept(connection: Connection): Connection[] {
    return connection instanceof UpstreamSession ? this.#sessions : this.#idle
  }

  moved(connection: Connection, address: UpstreamAddress): Pool {
    const pool = this.#pools.at(address)
    pool.opened(connection)
    this.closed(connection)
    return pool
  }

  closed(connection: Connection): void {
    this.forget(connection)
    this.#open.delete(connection)
    this.dropIfUnused()
  }

  /** Begins an HTTP/2 stream on a connection that has room, or on a new one. */
  begin(
    parts: EngineParts,
    handler: UpstreamHandler,
    options: ConnectOptions,
    after: UpstreamStream | undefined,
  ): UpstreamStream {
    // Requests that lost the same connection share the next one.
    const oldest = after?.serial ?? 0
    let session = this.#find(oldest, true) ?? this.#find(oldest, false)
    if (session === undefined) {
      session = new UpstreamSession(parts, this, options)
      this.opened(session)
    }
    return session.begin(handler)
  }

  /** Finds an HTTP/2 connection with room, younger than the one with number `oldest`. */
  #find(oldest: number, isSettled: boolean): UpstreamSession | undefined {
    for (const session of this.#sessions) {
      if (session.isSettled === isSettled && session.serial > oldest && session.hasRoom) {
        return session
      }
    }
    return undefined
  }

  /** State of the current connections to the address. */
  get state(): PoolState {
    const { label, pool } = this.address
    const state = { endpoint: label ?? pool, idle: 0, busy: 0, streams: 0 }
    for (const connection of this.#open) {
      if (connection.isIdle) state.idle++
      else state.busy++
      if (connection instanceof UpstreamSession) state.streams += connection.streamCount
    }
    return state
  }

  dropIfUnused(): void {
    if (this.#open.size === 0) this.#pools.drop(this)
  }

  close(): void {
    for (const connection of [...this.#open]) connection.close()
  }
}

/** All pools of an engine. Addresses with an equal `pool` share one pool. */
export class Pools implements UpstreamSource {
  readonly #parts: () => EngineParts
  readonly #pools = new Map<string, Pool>()
  /** By pool identity: the version that the server selected last. Entries outlive the pools. */
  readonly #selected = new Map<string, HttpVersion>()
  /** By pool identity: when servers close idle connections. Entries outlive the pools. */
  readonly idleLimits = new Map<string, IdleLimit>()

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
   * Whether the server is likely to select HTTP/2. HTTP/2 is assumed at first, so that all waiting
   * requests share one connection, and only that one is lost if the server selects HTTP/1.1.
   */
  #expectsHttp2({ negotiates, pool }: UpstreamAddress): boolean {
    return negotiates === true && this.#selected.get(pool) !== '1.1'
  }

  /** Called when the server has selected a version, which it is likely to select again. */
  remember({ pool }: UpstreamAddress, version: HttpVersion): void {
    if (this.#selected.get(pool) === version) return
    if (this.#selected.size >= maxRemembered) this.#selected.clear()
    this.#selected.set(pool, version)
  }

  now(): number {
    return this.#parts().clock.now()
  }

  /** Begins to learn when the server closes idle connections. */
  addIdleLimit({ pool }: UpstreamAddress): IdleLimit {
    if (this.idleLimits.size >= maxRemembered) this.idleLimits.clear()
    const limit = new IdleLimit()
    this.idleLimits.set(pool, limit)
    return limit
  }

  /** Returns the pool of an address. */
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
