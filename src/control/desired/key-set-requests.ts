import type { DocumentRequest } from '../../ground/model/key-sets.ts'

/** The key sets and issuers that are wanted: the requests of all derivations. Of requests with the same URI, the shortest period is used. */
export class KeySetRequests {
  readonly #byOwner = new Map<object, readonly DocumentRequest[]>()
  #joined: readonly DocumentRequest[] | undefined

  /** Replaces all requests of an owner. */
  set(owner: object, requests: readonly DocumentRequest[]): void {
    if (requests.length === 0 && !this.#byOwner.has(owner)) return
    if (requests.length === 0) this.#byOwner.delete(owner)
    else this.#byOwner.set(owner, requests)
    this.#joined = undefined
  }

  /** One request per URI. Returns the same array until something changes. */
  all(): readonly DocumentRequest[] {
    this.#joined ??= this.#join()
    return this.#joined
  }

  #join(): readonly DocumentRequest[] {
    const byUri = new Map<string, DocumentRequest>()
    for (const request of [...this.#byOwner.values()].flat()) {
      const known = byUri.get(request.uri)
      if (known === undefined || request.cacheMs < known.cacheMs) byUri.set(request.uri, request)
    }
    return [...byUri.values()].sort((a, b) => (a.uri < b.uri ? -1 : 1))
  }
}
