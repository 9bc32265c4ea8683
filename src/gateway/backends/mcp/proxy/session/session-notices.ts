/**
 * Events that a client's stream reports although no server does: a session was begun again, or
 * a target was missing in a list. The stream may be in another thread.
 */
import { BoundedMap } from '../../../../../ground/base/bounded-map.ts'
import { SetMap } from '../../../../../ground/base/set-map.ts'
import { ThreadChannel } from './threads.ts'

/** A message between threads. */
type SessionNotice = { readonly client: string; readonly target: string } & (
  | { readonly renewed: readonly string[] }
  | { readonly missing: string }
  | { readonly found: string }
)

/** The stream of a client's session. */
interface SessionWatcher {
  /** Called when a session at the target has begun. `uris` are the target's resources that were subscribed again. */
  onRenewed(target: string, uris: readonly string[]): void
  /** Called if the target is missing in a list of this method that the client gets. */
  onMissing(target: string, method: string): void
}

/** A list without the items of a target. */
interface MissingList {
  readonly target: string
  readonly method: string
}

/** Maximum number of clients' sessions of which missing lists are kept. */
const maxClients = 50_000

export class SessionNotices {
  readonly #watchers = new SetMap<string, SessionWatcher>()
  /** By client's session. */
  readonly #missing = new BoundedMap<string, readonly MissingList[]>(maxClients)
  readonly #channel = new ThreadChannel<SessionNotice>('session notices', (notice) =>
    this.#receive(notice),
  )

  constructor() {
    this.#channel.open()
  }

  /** `client` is the id of the client's session. Returns a function that removes the watcher. */
  watch(client: string, watcher: SessionWatcher): () => void {
    this.#watchers.add(client, watcher)
    for (const { target, method } of this.#listsOf(client)) watcher.onMissing(target, method)
    return () => this.#watchers.delete(client, watcher)
  }

  /** Reports that a session at a target was begun after the client's session. */
  reportRenewed(client: string, target: string, uris: readonly string[]): void {
    this.#channel.publish({ client, target, renewed: uris })
  }

  /** Reports that a target is missing in a list that the client gets. */
  reportMissing(client: string, target: string, method: string): void {
    this.#channel.publish({ client, target, missing: method })
  }

  /** Reports that the target responds to the method again. */
  reportFound(client: string, target: string, method: string): void {
    this.#channel.publish({ client, target, found: method })
  }

  /** Drops what is kept of a session that has ended. */
  forget(client: string): void {
    this.#missing.delete(client)
  }

  #listsOf(client: string): readonly MissingList[] {
    return this.#missing.get(client) ?? []
  }

  #receive(notice: SessionNotice): void {
    const { client, target } = notice
    const method =
      'missing' in notice ? notice.missing : 'found' in notice ? notice.found : undefined
    const others = this.#listsOf(client).filter(
      (one) => one.target !== target || (method !== undefined && one.method !== method),
    )
    if ('missing' in notice) others.push({ target, method: notice.missing })
    if (others.length > 0) this.#missing.set(client, others)
    else this.#missing.delete(client)
    for (const watcher of [...this.#watchers.get(client)]) {
      if ('missing' in notice) watcher.onMissing(target, notice.missing)
      else if ('renewed' in notice) watcher.onRenewed(target, notice.renewed)
    }
  }
}
