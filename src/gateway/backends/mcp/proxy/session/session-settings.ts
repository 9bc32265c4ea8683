/**
 * What legacy clients have set for their sessions: each request to a modern server must contain it, and a session
 * at a server that is begun later gets it again. All threads of the process know it.
 */
import { BoundedMap } from '../../../../../ground/base/bounded-map.ts'
import { SetMap } from '../../../../../ground/base/set-map.ts'
import { ThreadChannel } from './threads.ts'

interface Settings {
  logLevel: string | undefined
  /** Subscribed resources: the target, a space, which names of targets do not contain, and the URI. */
  readonly resources: Set<string>
}

type SettingsChange =
  | { readonly logLevel: string }
  | { readonly target: string; readonly uri: string; readonly isSubscribed: boolean }

/** Maximum number of sessions with settings, and of resources of each. */
const maxSessions = 50_000
const maxResources = 1_000

export class SessionSettings {
  readonly #all = new BoundedMap<string, Settings>(maxSessions)
  readonly #watchers = new SetMap<string, () => void>()
  readonly #channel = new ThreadChannel<{ session: string; change: SettingsChange }>(
    'session settings',
    ({ session, change }) => this.#apply(session, change),
  )

  constructor() {
    // Changes that come before this thread needs them must not be lost.
    this.#channel.open()
  }

  logLevel(session: string): string | undefined {
    return this.#all.get(session)?.logLevel
  }

  /** Returns the URIs at a target to which the session has subscribed. */
  uris(session: string, target: string): string[] {
    const prefix = `${target} `
    return [...(this.#all.get(session)?.resources ?? [])].flatMap((one) =>
      one.startsWith(prefix) ? [one.slice(prefix.length)] : [],
    )
  }

  /** Changes the settings of a session in all threads. Returns false if there are too many resources. */
  change(session: string, change: SettingsChange): boolean {
    const count = this.#all.get(session)?.resources.size ?? 0
    if ('uri' in change && change.isSubscribed && count >= maxResources) return false
    this.#channel.publish({ session, change })
    return true
  }

  #apply(session: string, change: SettingsChange): void {
    const settings = this.#all.get(session) ?? { logLevel: undefined, resources: new Set() }
    this.#all.set(session, settings)
    if ('logLevel' in change) settings.logLevel = change.logLevel
    else {
      const resource = `${change.target} ${change.uri}`
      if (change.isSubscribed) settings.resources.add(resource)
      else settings.resources.delete(resource)
      for (const watcher of this.#watchers.get(session)) watcher()
    }
  }

  /** Calls `watcher` when the resources of a session change. Returns a function that removes it. */
  watch(session: string, watcher: () => void): () => void {
    this.#watchers.add(session, watcher)
    return () => this.#watchers.delete(session, watcher)
  }

  /** Drops the settings of a session that has ended. */
  forget(session: string): void {
    this.#all.delete(session)
  }
}
