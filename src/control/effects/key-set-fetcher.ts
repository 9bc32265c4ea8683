/**
 * Keeps the key sets of policies up to date. A fetched set is recorded as an event unless it is
 * unchanged. The last valid set stays in the log while a server is down, and over restarts.
 */
import { hash, randomUUID } from 'node:crypto'
import { documentFetched, jwksFetched, type SluiceEvent } from '../../../events/index.ts'
import { canonicalJson } from '../../ground/base/canonical.ts'
import { timerDelay } from '../../ground/base/timer-delay.ts'
import {
  type ApiDocumentRequest,
  type DocumentRequest,
  type IssuerRequest,
  isApiDocument,
  type KeySetRequest,
  keySetText,
  problemUri,
} from '../../ground/model/key-sets.ts'
import type { Resource } from '../../ground/model/resources.ts'
import { newEvent } from '../log/index.ts'
import type { SecretLookup } from './call-backend.ts'
import { calledAddress } from './called-address.ts'
import { failureText } from './failure-text.ts'
import type { PublicKeySet } from './fetch-key-set.ts'

interface KeySetFetcherOptions {
  /** The epoch of the lease, or 0 without a lease. */
  readonly epoch: () => number
  /** The desired state, which has addresses and TLS settings of backends. */
  readonly resources: () => readonly Resource[]
  readonly secret: SecretLookup
  /** DNS domain of the cluster: the last part of the names of Services. */
  readonly clusterDomain: string
  /** Returns the digest of the key set in the fold, or undefined if there is none. */
  readonly known: (uri: string) => string | undefined
  readonly append: (event: SluiceEvent) => Promise<void>
  /** Called with a notice for operators if a fetch has failed. */
  readonly onNotice: (text: string) => void
  /** Called with a notice for operators if keys have arrived after failures. */
  readonly onRecovered: (text: string) => void
}

interface Fetching {
  request: DocumentRequest
  timer: NodeJS.Timeout | undefined
  failures: number
  /** The entity tag of the last document that was fetched. */
  etag?: string | undefined
  /** When the last changes of the document were recorded, as `performance.now()`. */
  changes?: readonly number[]
}

const source = '/sluice/key-sets'
/** Shortest delay between two fetches. */
const shortestMs = 100
const firstRetryMs = 1_000
const longestRetryMs = 60_000
/** Maximum number of changes of a document in `changesMs` milliseconds, because each one adds up to 1 MB to the log. */
const maxChanges = 20
const changesMs = 3_600_000

export class KeySetFetcher {
  readonly #options: KeySetFetcherOptions
  readonly #fetching = new Map<string, Fetching>()
  readonly #end = new AbortController()
  readonly #underWay = new Set<Promise<void>>()
  /** Part of event ids that is different in every run. */
  readonly #run = randomUUID()
  #events = 0

  constructor(options: KeySetFetcherOptions) {
    this.#options = options
  }

  /** Fetches new key sets, and stops fetching those that are not in the list. */
  update(wanted: readonly DocumentRequest[]): void {
    if (this.#end.signal.aborted) return
    const uris = new Set(wanted.map(({ uri }) => uri))
    for (const [uri, { timer }] of this.#fetching) {
      if (uris.has(uri)) continue
      clearTimeout(timer)
      this.#fetching.delete(uri)
    }
    for (const request of wanted) this.#want(request)
  }

  #want(request: DocumentRequest): void {
    const known = this.#fetching.get(request.uri)
    if (known === undefined) {
      const fetching = { request, timer: undefined, failures: 0 }
      this.#fetching.set(request.uri, fetching)
      this.#start(fetching)
      return
    }
    const isSooner = request.cacheMs < known.request.cacheMs
    known.request = request
    if (isSooner) this.#schedule(known, request.cacheMs)
  }

  /** Resolves when all fetches under way have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async close(): Promise<void> {
    this.#end.abort()
    for (const { timer } of this.#fetching.values()) clearTimeout(timer)
    this.#fetching.clear()
    await this.settled()
  }

  #start(fetching: Fetching): void {
    const fetched = this.#fetch(fetching).finally(() => this.#underWay.delete(fetched))
    this.#underWay.add(fetched)
  }

  async #fetch(fetching: Fetching): Promise<void> {
    const { request } = fetching
    if ('issuer' in request) return this.#check(fetching, request)
    if ('section' in request) return this.#fetchDocument(fetching, request)
    return this.#fetchKeys(fetching, request)
  }

  /** The last document stays in use while a server is down or serves nothing that can be used. */
  async #fetchDocument(fetching: Fetching, request: ApiDocumentRequest): Promise<void> {
    const { resources, secret, clusterDomain, known, onRecovered } = this.#options
    const { uri, path } = request
    const text = `OpenAPI document of ${keySetText(uri)}`
    const { signal: stop } = this.#end
    try {
      const { fetchApiDocument } = await import('./fetch-api-document.ts')
      const address = calledAddress(request, resources(), clusterDomain, Math.random)
      const etag = known(uri) === undefined ? undefined : fetching.etag
      const found = await fetchApiDocument(address, path, etag, secret, stop)
      if (found !== undefined) await this.#recordDocument(fetching, request, found.document)
      fetching.etag = found === undefined ? etag : found.etag
      if (known(problemUri(uri)) !== undefined) await this.#record(problemUri(uri), {})
      if (fetching.failures > 0) onRecovered(`${text}: it can be fetched again`)
      fetching.failures = 0
    } catch (error) {
      if (stop.aborted) return
      fetching.failures++
      if (fetching.failures === 1) await this.#recordFailure(uri, text, failureText(error))
    }
    this.#schedule(fetching, delayOf(fetching))
  }

  /** @throws Error if the target cannot use the document, or if it changes too often */
  async #recordDocument(
    fetching: Fetching,
    { uri, problemOf }: ApiDocumentRequest,
    document: PublicKeySet,
  ): Promise<void> {
    if (this.#options.known(uri) === digestOf(canonicalJson(document))) return
    const problem = problemOf(document)
    if (problem !== undefined) throw new Error(problem)
    const now = performance.now()
    const changes = (fetching.changes ?? []).filter((at) => at > now - changesMs)
    if (changes.length >= maxChanges) {
      throw new Error(`the document has changed more than ${maxChanges} times within an hour`)
    }
    await this.#record(uri, document)
    fetching.changes = [...changes, now]
  }

  async #recordFailure(uri: string, text: string, problem: string): Promise<void> {
    const { known, onNotice } = this.#options
    const effect =
      known(uri) === undefined ? 'Its tools are missing' : 'The last document stays in use'
    onNotice(`${text}: ${problem}. ${effect}; fetching is retried.`)
    try {
      await this.#record(problemUri(uri), { problem })
    } catch {
      // The log reports that it cannot be written.
    }
  }

  /** Records what is wrong with an issuer once two checks in a row have found something. */
  async #check(fetching: Fetching, request: IssuerRequest): Promise<void> {
    const { resources, secret, clusterDomain, known, onNotice, onRecovered } = this.#options
    const { uri, issuer } = request
    const { signal: stop } = this.#end
    try {
      const { issuerProblem } = await import('./check-issuer.ts')
      const context = { resources: resources(), secret, clusterDomain, stop }
      const problem = await issuerProblem(request, context)
      if (problem === undefined) {
        if (fetching.failures > 1) onRecovered(`issuer ${issuer} can be used again`)
        fetching.failures = 0
        if (known(uri) !== undefined) await this.#record(uri, {})
      } else {
        fetching.failures++
        if (fetching.failures > 1) await this.#record(uri, { problem })
        if (fetching.failures === 2)
          onNotice(`issuer ${issuer}: ${problem}; it will be checked again`)
      }
    } catch {
      // The check ends because the control plane does, or its event could not be stored.
      fetching.failures++
    }
    this.#schedule(fetching, delayOf(fetching))
  }

  async #fetchKeys(fetching: Fetching, request: KeySetRequest): Promise<void> {
    const { resources, secret, clusterDomain, onNotice, onRecovered } = this.#options
    let text = keySetText(request.uri)
    try {
      // Most gateways fetch no key set, and the HTTP client takes memory.
      const { fetchKeySet } = await import('./fetch-key-set.ts')
      const address = calledAddress(request, resources(), clusterDomain, Math.random)
      text = keySetText(request.uri, address.tls === undefined ? 'http' : 'https')
      const keySet = await fetchKeySet(address, request.path, secret, this.#end.signal)
      await this.#record(request.uri, keySet)
      if (fetching.failures > 0) onRecovered(`keys have arrived from ${text}`)
      fetching.failures = 0
    } catch (error) {
      if (this.#end.signal.aborted) return
      fetching.failures++
      if (fetching.failures === 1) onNotice(this.#failureText(request.uri, text, error))
    }
    this.#schedule(fetching, delayOf(fetching))
  }

  /** Says why no keys came, and what this means for requests until they do. */
  #failureText(uri: string, text: string, error: unknown): string {
    const isKnown = this.#options.known(uri) !== undefined
    const effect = isKnown
      ? 'The last keys stay in use'
      : 'Tokens that need them are refused until they arrive'
    return `no keys from ${text}: ${failureText(error)}. ${effect}; fetching is retried.`
  }

  #schedule(fetching: Fetching, delayMs: number): void {
    clearTimeout(fetching.timer)
    if (this.#end.signal.aborted || this.#fetching.get(fetching.request.uri) !== fetching) return
    fetching.timer = setTimeout(
      () => this.#start(fetching),
      timerDelay(Math.max(shortestMs, delayMs)),
    )
    fetching.timer.unref()
  }

  async #record(uri: string, keySet: PublicKeySet): Promise<void> {
    const { epoch, known, append } = this.#options
    const digest = digestOf(canonicalJson(keySet))
    if (known(uri) === digest) return
    const id = `${this.#run}:key-set:${this.#events++}`
    const by = { source, epoch: epoch() }
    const name = digestOf(uri)
    if (isApiDocument(uri)) {
      const data = { uri, digest, document: keySet }
      const more = { id: `${id}:${documentFetched.type}`, data }
      await append(newEvent(documentFetched, by, { kind: 'Document', name }, more))
      return
    }
    const more = { id: `${id}:${jwksFetched.type}`, data: { uri, digest, keySet } }
    await append(newEvent(jwksFetched, by, { kind: 'Jwks', name }, more))
  }
}

function delayOf({ request, failures }: Fetching): number {
  if (failures === 0) return request.cacheMs
  const backoff = Math.min(firstRetryMs * 2 ** (failures - 1), longestRetryMs)
  return Math.min(backoff, request.cacheMs)
}

const digestOf = (text: string): string => hash('sha256', text).slice(0, 32)
