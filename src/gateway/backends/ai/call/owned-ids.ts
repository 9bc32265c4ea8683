/**
 * Ids of what providers store, as clients have them. An id is sealed together with the backend, the owner (`ownerDigest`),
 * and the provider that stores the thing, so that no table is needed, and every proxy with the key can open it:
 *
 *   resp_<sealed ["provider", "resp_68f…", "the model that the client asked for"]>
 */
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import {
  type IdOpener,
  type SealId,
  type StoredKind,
  StoredNotFoundError,
} from '../../../../engines/messages/stored/stored-ids.ts'
import type { Exchange } from '../../../../ground/exchange/exchange.ts'
import { Seal } from '../../../../ground/secrets/seal.ts'
import { ownerDigest } from '../../../principal/principal.ts'

/** What an id says. */
interface OpenedId {
  /** The provider that stores the thing (`ProviderEndpoint.place`). */
  readonly place: string
  /** The id of the provider. */
  readonly id: string
  /** The model that the client asked for, if the provider has another name for it. */
  readonly asked?: string | undefined
}

const maxLength = 2_048
/** Clients know kinds of ids by how they begin. */
const beginning = /^[A-Za-z]{1,16}[_-]/

/** Seals what clients keep, such as ids, for one thread. */
export class IdSeal {
  readonly #secret: () => Uint8Array | undefined
  readonly #purpose: string
  #current: { readonly secret: Uint8Array; readonly seal: Seal } | undefined

  /** `secret` returns the key that all proxies share; undefined until it has arrived. */
  constructor(
    secret: () => Uint8Array | undefined,
    purpose = 'sluice ids of stored model objects',
  ) {
    this.#secret = secret
    this.#purpose = purpose
  }

  /** @throws LlmError 503 without a key */
  get seal(): Seal {
    const secret = this.#secret()
    if (secret === undefined) {
      throw new LlmError(503, 'the key for ids and placeholders has not arrived yet')
    }
    if (this.#current?.secret !== secret) {
      this.#current = { secret, seal: new Seal(this.#purpose, secret) }
    }
    return this.#current.seal
  }
}

/** The ids of one client at one backend. */
export class OwnedIds {
  readonly #ids: IdSeal
  readonly #owner: readonly [backend: string, owner: string | null]

  constructor(ids: IdSeal, backend: string, exchange: Exchange) {
    this.#ids = ids
    this.#owner = [backend, ownerDigest(exchange) ?? null]
  }

  #context(kind: StoredKind): string {
    return JSON.stringify([kind, ...this.#owner])
  }

  /**
   * Returns what seals the ids of a response. An id that occurs again, as in events, is sealed only once.
   * @throws LlmError 503 without a key
   */
  sealer(place: string, asked?: string): SealId {
    const { seal } = this.#ids
    const known = new Map<string, string>()
    return (kind, id) => {
      const key = `${kind} ${id}`
      const before = known.get(key)
      if (before !== undefined) return before
      const plain = JSON.stringify([place, id, ...(kind === 'response' && asked ? [asked] : [])])
      const [prefix = ''] = beginning.exec(id) ?? []
      const sealed = prefix + seal.sealSame(plain, this.#context(kind))
      known.set(key, sealed)
      return sealed
    }
  }

  /** Returns undefined if the client does not own such a thing. @throws LlmError 503 without a key */
  open(kind: StoredKind, text: string): OpenedId | undefined {
    if (text.length > maxLength) return undefined
    const [prefix = ''] = beginning.exec(text) ?? []
    // The sealed text may begin like a prefix if the provider's ids have none.
    return this.#openAfter(prefix, kind, text) ?? this.#openAfter('', kind, text)
  }

  #openAfter(prefix: string, kind: StoredKind, text: string): OpenedId | undefined {
    const plain = this.#ids.seal.open(text.slice(prefix.length), this.#context(kind))
    if (plain === undefined) return undefined
    const [place, id, asked] = JSON.parse(plain.toString()) as [string, string, string?]
    const [own = ''] = beginning.exec(id) ?? []
    return own === prefix ? { place, id, asked } : undefined
  }

  /** @throws StoredNotFoundError if the client does not own such a thing */
  need(kind: StoredKind, text: string, param?: string): OpenedId {
    const opened = this.open(kind, text)
    if (opened === undefined) throw new StoredNotFoundError(kind, text, param)
    return opened
  }
}

/** Opens the ids in the body of one request. `current` is the chosen provider. */
export class RequestIds implements IdOpener {
  readonly #owned: OwnedIds
  readonly #current: string
  /** The provider that stores what the request needs; undefined if it needs nothing. */
  place: string | undefined

  constructor(owned: OwnedIds, current: string) {
    this.#owned = owned
    this.#current = current
  }

  need(kind: StoredKind, text: string, param: string): string {
    const { place, id } = this.#owned.need(kind, text, param)
    if (this.place !== undefined && this.place !== place) {
      throw new LlmError(
        400,
        `${param}: it is stored at another provider than what the request also refers to`,
      )
    }
    this.place = place
    return id
  }

  find(kind: StoredKind, text: string): string | undefined {
    const opened = this.#owned.open(kind, text)
    return opened?.place === this.#current ? opened.id : undefined
  }
}
