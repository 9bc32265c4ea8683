/** The sessions and tokens that have ended, as events of the log say. Proxies get the list; no object depends on it. */
import type { SluiceEvent } from '../../../events/index.ts'
import { type EndedEntry, EndedList } from '../../ground/model/ended-sessions.ts'

type OnEnded = (entries: readonly EndedEntry[]) => void

export class EndedSessions {
  readonly #list = new EndedList()
  #send: OnEnded = () => undefined

  /** Sends all entries, and then those that are new. */
  sendTo(receive: OnEnded): void {
    this.#send = receive
    receive(this.#list.all())
  }

  /** Returns whether a session or token with one of these ids has ended. `issuedAt` is when it was issued, in seconds. */
  has(ids: readonly string[], issuedAt: number, nowMs: number): boolean {
    return this.#list.has(ids, issuedAt, nowMs)
  }

  /** Returns whether the event is about sessions. Entries end by the times of events, as all clocks do. */
  apply(event: SluiceEvent): boolean {
    if (event.type !== 'dev.sluice.sessions.ended.v1') return false
    const added = this.#list.add(event.data.entries, Date.parse(event.time))
    if (added.length > 0) this.#send(added)
    return true
  }

  snapshot(): { readonly ended?: readonly EndedEntry[] } {
    return this.#list.size === 0 ? {} : { ended: this.#list.all() }
  }

  restore(ended: readonly EndedEntry[] = []): void {
    this.#list.clear()
    this.#list.add(ended, 0)
    if (ended.length > 0) this.#send(ended)
  }
}
