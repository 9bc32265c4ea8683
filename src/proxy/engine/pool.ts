import type { EngineParts } from './engine-parts.ts'
import type { UpstreamAddress } from './types.ts'
import { UpstreamConnection } from './upstream-connection.ts'
import type { UpstreamLink, UpstreamUser } from './upstream-link.ts'

/** Connections to one address. The one that was used last is used next, so that the rest can age. */
export class Pool {
  readonly address: UpstreamAddress
  readonly #pools: Pools
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

  keep(connection: UpstreamConnection): void {
    this.#idle.push(connection)
  }

  forget(connection: UpstreamConnection): void {
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
  }

  closed(connection: UpstreamConnection): void {
    this.#open.delete(connection)
    this.dropIfUnused()
  }

  dropIfUnused(): void {
    if (this.#open.size === 0) this.#pools.drop(this)
  }

  close(): void {
    for (const connection of [...this.#open]) connection.close()
  }
}

/** All pools of an engine, by the identity that makes connections interchangeable. */
export class Pools {
  readonly #parts: () => EngineParts
  readonly #pools = new Map<string, Pool>()

  constructor(parts: () => EngineParts) {
    this.#parts = parts
  }

  /**
   * Finds or makes a connection; `onUpstreamReady` follows, at once where one was idle.
   * `isFresh` asks for a new connection. Returns the connection; throws `overloaded` where none can
   * be made.
   */
  acquire(
    address: UpstreamAddress,
    user: UpstreamUser,
    connectTimeoutMs: number,
    isFresh: boolean,
  ): UpstreamLink {
    let pool = this.#pools.get(address.pool)
    if (pool === undefined) {
      pool = new Pool(this, address)
      this.#pools.set(address.pool, pool)
    }
    const idle = isFresh ? undefined : pool.takeIdle()
    if (idle !== undefined) return idle
    try {
      const connection = new UpstreamConnection(this.#parts(), pool, user, connectTimeoutMs)
      pool.opened(connection)
      return connection
    } finally {
      pool.dropIfUnused()
    }
  }

  drop(pool: Pool): void {
    if (this.#pools.get(pool.address.pool) === pool) this.#pools.delete(pool.address.pool)
  }

  close(): void {
    for (const pool of [...this.#pools.values()]) pool.close()
  }
}
