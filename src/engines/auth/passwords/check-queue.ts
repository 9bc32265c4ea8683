/**
 * Password checks that wait for a thread. Clients take turns by address, and the users of an address take
 * turns too, so that a flood of guesses delays others by one check of each client at most.
 */

/** Who waits for a check. */
export interface PasswordClient {
  readonly address: string
  readonly user: string
  /** True once the client is gone. */
  readonly isGone: () => boolean
}

export interface WaitingCheck {
  readonly digest: string
  readonly password: string
  readonly hash: string
  /** All clients that sent the same credentials. */
  readonly clients: PasswordClient[]
  /** Time of `performance.now()` at which the check began to wait. */
  readonly since: number
  resolve(fits: boolean): void
  reject(error: Error): void
}

type ByUser = Map<string, WaitingCheck[]>

export class CheckQueue {
  readonly #byAddress = new Map<string, ByUser>()
  size = 0

  /** Number of checks that wait for a client address. */
  sizeOf(address: string): number {
    let size = 0
    for (const checks of this.#byAddress.get(address)?.values() ?? []) size += checks.length
    return size
  }

  add(check: WaitingCheck, { address, user }: PasswordClient): void {
    const byUser = this.#byAddress.get(address) ?? new Map<string, WaitingCheck[]>()
    this.#byAddress.set(address, byUser)
    const checks = byUser.get(user)
    if (checks === undefined) byUser.set(user, [check])
    else checks.push(check)
    this.size++
  }

  /** Removes and returns the next check, whose address and user then come last. */
  take(): WaitingCheck | undefined {
    const first = this.#byAddress.entries().next().value
    if (first === undefined) return undefined
    const [address, byUser] = first
    this.#byAddress.delete(address)
    const check = takeOf(byUser)
    if (byUser.size > 0) this.#byAddress.set(address, byUser)
    if (check !== undefined) this.size--
    return check
  }

  /** Removes and returns the checks that match. */
  remove(matches: (check: WaitingCheck) => boolean): WaitingCheck[] {
    const removed: WaitingCheck[] = []
    for (const [address, byUser] of this.#byAddress) {
      for (const [user, checks] of byUser) {
        removed.push(...checks.filter(matches))
        const kept = checks.filter((check) => !matches(check))
        if (kept.length === 0) byUser.delete(user)
        else byUser.set(user, kept)
      }
      if (byUser.size === 0) this.#byAddress.delete(address)
    }
    this.size -= removed.length
    return removed
  }
}

function takeOf(byUser: ByUser): WaitingCheck | undefined {
  const first = byUser.entries().next().value
  if (first === undefined) return undefined
  const [user, checks] = first
  byUser.delete(user)
  const check = checks.shift()
  if (checks.length > 0) byUser.set(user, checks)
  return check
}
