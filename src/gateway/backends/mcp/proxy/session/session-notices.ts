/**
 * Events that a client's stream reports although no server does: a session was begun again, or
 * a target was missing in a list. The stream may be in another thread.
 */
import { BroadcastChannel } from 'node:worker_threads'

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
  readonly #watchers = new Map<string, Set<SessionWatcher>>()
  /** By client's session, then by target and method. */
  readonly #missing = new Map<string, Map<string, MissingList>>()
  readonly #channel = new BroadcastChannel('sluice mcp session notices')

  constructor() {
    this.#channel.onmessage = (event) => this.#receive((event as { data: SessionNotice }).data)
    this.#channel.unref()
  }

  /** `client` is the id of the client's session. Returns a function that removes the watcher. */
  watch(client: string, watcher: SessionWatcher): () => void {
    const all = this.#watchers.get(client) ?? new Set()
    this.#watchers.set(client, all.add(watcher))
    for (const { target, method } of [...(this.#missing.get(client)?.values() ?? [])]) {
      watcher.onMissing(target, method)
    }
    return () => {
      all.delete(watcher)
      if (all.size === 0 && this.#watchers.get(client) === all) this.#watchers.delete(client)
    }
  }

  /** Called when a session at a target was begun after the client's session. */
  renewed(client: string, target: string, uris: readonly string[]): void {
    this.#send({ client, target, renewed: uris })
  }

  /** Called if a target is missing in a list that the client gets. */
  missing(client: string, target: string, method: string): void {
    this.#send({ client, target, missing: method })
  }

  /** Called when the target responds to the method again. */
  found(client: string, target: string, method: string): void {
    this.#send({ client, target, found: method })
  }

  /** Drops what is kept of a session that has ended. */
  forget(client: string): void {
    this.#missing.delete(client)
  }

  #send(notice: SessionNotice): void {
    this.#receive(notice)
    this.#channel.postMessage(notice)
  }

  #receive(notice: SessionNotice): void {
    const { client, target } = notice
    if ('found' in notice) {
      this.#drop(client, ({ method, target: one }) => one === target && method === notice.found)
      return
    }
    if ('missing' in notice) this.#keep(client, { target, method: notice.missing })
    else this.#drop(client, (one) => one.target === target)
    for (const watcher of [...(this.#watchers.get(client) ?? [])]) {
      if ('missing' in notice) watcher.onMissing(target, notice.missing)
      else watcher.onRenewed(target, notice.renewed)
    }
  }

  #keep(client: string, list: MissingList): void {
    const lists = this.#missing.get(client) ?? new Map<string, MissingList>()
    const [oldest] = this.#missing.size >= maxClients ? this.#missing.keys() : []
    if (oldest !== undefined) this.#missing.delete(oldest)
    this.#missing.set(client, lists.set(`${list.target} ${list.method}`, list))
  }

  #drop(client: string, isOver: (list: MissingList) => boolean): void {
    const lists = this.#missing.get(client)
    for (const [key, list] of [...(lists ?? [])]) if (isOver(list)) lists?.delete(key)
    if (lists?.size === 0) this.#missing.delete(client)
  }
}
