/** Sessions at targets that were begun after the client's session, for all threads of the process. */
import { BoundedMap } from '../../../../../ground/base/bounded-map.ts'
import type { TargetSession } from './session-state.ts'
import { runAlone, ThreadChannel } from './threads.ts'

/** A message between threads: a session that one of them has begun. */
interface BegunSession {
  readonly client: string
  readonly target: string
  readonly session: TargetSession
}

/** Maximum number of clients' sessions of which later sessions are kept. */
const maxClients = 50_000

const isSame = (one: TargetSession, other: TargetSession | undefined): boolean =>
  one.id === other?.id && one.connection === other?.connection

export class TargetSessions {
  /** By client's session and target. */
  readonly #all = new BoundedMap<string, Map<string, TargetSession>>(maxClients)
  readonly #channel = new ThreadChannel<BegunSession>('late sessions', (begun) => this.#keep(begun))

  constructor() {
    this.#channel.open()
  }

  /** `client` is the id of the client's session. */
  find(client: string, target: string): TargetSession | undefined {
    return this.#all.get(client)?.get(target)
  }

  /** Calls `begin` unless another thread has begun a session since `lost` was in use. */
  begin(
    client: string,
    target: string,
    lost: TargetSession | undefined,
    begin: () => Promise<TargetSession>,
  ): Promise<TargetSession> {
    return runAlone(`${client} ${target}`, async () => {
      // The thread that had the lock before has posted its session.
      this.#channel.receivePosted()
      const known = this.find(client, target)
      if (known !== undefined && !isSame(known, lost)) return known
      const session = await begin()
      this.#channel.publish({ client, target, session })
      return session
    })
  }

  #keep({ client, target, session }: BegunSession): void {
    const targets = this.#all.get(client) ?? new Map<string, TargetSession>()
    this.#all.set(client, targets.set(target, session))
  }

  /** Drops the sessions of a client's session that has ended. */
  forget(client: string): void {
    this.#all.delete(client)
  }
}
