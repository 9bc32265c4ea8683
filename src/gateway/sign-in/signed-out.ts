/**
 * Sessions that were signed out before their cookies expire: by the user, or by the provider. The workers of a proxy
 * tell each other at once. Other proxies learn it from the control plane (`src/gateway/tokens/refused.ts`), also after
 * a restart.
 */
import { BoundedMap } from '../../ground/base/bounded-map.ts'
import { endedId, nameOfSubject } from '../../ground/model/ended-sessions.ts'
import { refused, reportEnded } from '../tokens/refused.ts'
import type { Session } from './session.ts'
import { receiveMessages, sendMessage, type WorkerMessage } from './worker-channel.ts'

/** Maximum number of entries of each kind; then the oldest one is dropped. */
const maxEntries = 16_384

/**
 * Who says so: the user or a logout token, or only a frame, which anybody may request. Entries of frames are kept apart,
 * so that strangers displace no others.
 */
type Source = 'proven' | 'frame'

interface Entry {
  /** Sessions that began until then are signed out, in seconds by the clock of the provider. */
  readonly at: number
  /** When no session of the entry can be valid any more, in milliseconds since the epoch. */
  readonly until: number
}

const lists = new Map<string, SignedOut>()

/**
 * Returns the list of an issuer and a client, which all of their policies share. It is kept as long as the process
 * runs, because policies may be edited while a session lasts.
 */
export function signedOutOf(issuer: string, clientId: string): SignedOut {
  const topic = JSON.stringify(['signed out', issuer, clientId])
  let found = lists.get(topic)
  if (found === undefined) {
    found = new SignedOut(topic, issuer, clientId)
    lists.set(topic, found)
  }
  return found
}

export class SignedOut {
  readonly #topic: string
  readonly #issuer: string
  readonly #clientId: string
  readonly #entries: Readonly<Record<Source, BoundedMap<string, Entry>>> = {
    proven: new BoundedMap(maxEntries),
    frame: new BoundedMap(maxEntries),
  }
  #changes = 0

  constructor(topic: string, issuer: string, clientId: string) {
    this.#topic = topic
    this.#issuer = issuer
    this.#clientId = clientId
    receiveMessages(topic, (message) => this.#receive(message))
    sendMessage({ type: 'started', topic })
  }

  /** A number that increases with each change. */
  get version(): number {
    return this.#changes + refused.version
  }

  /** `name` is one of `nameOf…`. What is not proven stays in this proxy, because anybody can cause it. */
  add(name: string, at: number, until: number, source: Source = 'proven'): void {
    this.#set(source, name, { at, until })
    sendMessage({ type: 'signedOut', topic: this.#topic, source, name, at, until })
    if (source === 'frame') return
    const entries = [{ name, at, until }]
    reportEnded({ issuer: this.#issuer, clientId: this.#clientId, entries })
  }

  has({ id, claims, issuedAt }: Session, nowMs: number): boolean {
    const lists = [this.#entries.proven, this.#entries.frame].filter(({ size }) => size > 0)
    if (lists.length === 0 && refused.size === 0) return false
    const { sub, sid } = claims
    const names = [
      nameOfSession(id),
      ...(typeof sub === 'string' ? [nameOfSubject(sub)] : []),
      ...(typeof sid === 'string' ? [nameOfProviderSession(sid)] : []),
      ...(typeof sub === 'string' && sid === undefined ? [nameOfUnnamedSessions(sub)] : []),
    ]
    const isHere = lists.some((list) =>
      names.some((name) => {
        const entry = list.get(name)
        return entry !== undefined && entry.until > nowMs && issuedAt <= entry.at
      }),
    )
    return isHere || refused.has(this.#idsOf(names, claims), issuedAt, nowMs)
  }

  /** Operators revoke what belongs to a user for all clients of an issuer. */
  #idsOf(names: readonly string[], { iss, sub }: Session['claims']): string[] {
    const issuer = typeof iss === 'string' ? iss : this.#issuer
    const own = names.map((name) => endedId(this.#issuer, this.#clientId, name))
    return typeof sub === 'string' ? [...own, endedId(issuer, undefined, nameOfSubject(sub))] : own
  }

  #receive(message: WorkerMessage): void {
    if (message.type === 'signedOut') this.#set(message.source, message.name, message)
    if (message.type !== 'started') return
    for (const source of ['proven', 'frame'] as const) {
      for (const [name, { at, until }] of this.#entries[source]) {
        sendMessage({ type: 'signedOut', topic: this.#topic, source, name, at, until })
      }
    }
  }

  #set(source: Source, name: string, { at, until }: Entry): void {
    const entries = this.#entries[source]
    const known = entries.get(name)
    if (known !== undefined && known.at >= at && known.until >= until) return
    entries.delete(name)
    entries.set(name, { at, until })
    this.#changes++
  }
}

export const nameOfSession = (id: string): string => `id ${id}`
/** The sessions of a user whose ID tokens have no `sid`. */
export const nameOfUnnamedSessions = (sub: string): string => `no sid ${sub}`
export const nameOfProviderSession = (sid: string): string => `sid ${sid}`
