/**
 * The list and watch of one kind.
 *
 * ```
 *            404, no CRD                    the CRD comes
 *   absent ◄───────────── listing ◄────────────────────── absent
 *                          │    ▲
 *              last page   ▼    │ 410: the next changes are lost
 *                        following ──┐ the stream ends or breaks: continue from the last version
 *                          ▲         │
 *                          └─────────┘
 *   any ── refused, no answer ──► failing ── after a while ──► retry
 * ```
 */
import { setTimeout as after } from 'node:timers/promises'
import {
  collectionPath,
  type KubeClient,
  KubeError,
  type KubeList,
  type KubeObject,
  type Query,
} from '../../kube/index.ts'
import { Backoff } from './backoff.ts'
import { pathOf, type WatchedKind } from './kinds.ts'

export type KindState =
  | { readonly state: 'listing' | 'following' }
  /** No CRD defines the kind in a supported version. */
  | { readonly state: 'absent' }
  | { readonly state: 'failing'; readonly error: KubeError }

/** Whether a state needs no report, since an unreachable server causes various errors of one HTTP status. */
export function isSameReport(before: KindState | undefined, state: KindState): boolean {
  if (before?.state !== 'failing' || state.state !== 'failing') return before?.state === state.state
  return before.error.status === state.error.status
}

/** Receives the pages of one listing. `finish` is called after the last page. */
export interface PagedListing {
  page(objects: readonly KubeObject[]): void
  finish(): void
}

export interface KindSink {
  listing(kind: WatchedKind, version: string): PagedListing
  changed(kind: WatchedKind, version: string, type: 'put' | 'delete', object: KubeObject): void
  state(kind: WatchedKind, state: KindState): void
}

const pageSize = 500
const metadataOf = (what: string) => `application/json;as=${what};g=meta.k8s.io;v=v1`

export class KindWatch {
  readonly kind: WatchedKind
  readonly #client: KubeClient
  readonly #sink: KindSink
  readonly #stop = new AbortController()
  readonly #backoff = new Backoff(200, 5_000)
  #version: string
  /** Version to continue from; undefined if a listing is due. */
  #resume: string | undefined
  #running: Promise<void> = Promise.resolve()
  #pause = new AbortController()
  /** Ends the stream under way. */
  #turn = new AbortController()
  /** Called after the next listing. */
  #waiting: (() => void)[] = []
  /** Time of the last message, by `performance.now()`; 0 before the first. */
  lastEventAt = 0

  constructor(client: KubeClient, kind: WatchedKind, sink: KindSink) {
    this.kind = kind
    this.#client = client
    this.#sink = sink
    this.#version = kind.versions[0] ?? ''
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  /** Retries now. Called when the CRD was created or changed. */
  poke(): void {
    this.#backoff.reset()
    this.#pause.abort()
  }

  /** Lists now, since what is known may be old. Resolves after a listing that begins after the call. */
  listAgain(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push(resolve)
    this.#turn.abort()
    this.poke()
    return promise
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        if (this.#resume === undefined || this.#waiting.length > 0) await this.#list()
        else await this.#follow()
      } catch (error) {
        if (!signal.aborted && !this.#turn.signal.aborted) await this.#recover(error)
      }
    }
  }

  async #list(): Promise<void> {
    this.#turn = new AbortController()
    const asked = this.#waiting.length
    this.#sink.state(this.kind, { state: 'listing' })
    const listing = this.#sink.listing(this.kind, this.#version)
    let from: string | undefined
    let resourceVersion: string | undefined
    do {
      const list = await this.#page(from)
      // `items` is null in an empty list of metadata.
      listing.page(list.items ?? [])
      from = list.metadata.continue || undefined
      resourceVersion = list.metadata.resourceVersion
    } while (from !== undefined)
    listing.finish()
    this.#resume = resourceVersion ?? '0'
    this.#noteEvent()
    this.#sink.state(this.kind, { state: 'following' })
    for (const resolve of this.#waiting.splice(0, asked)) resolve()
  }

  #page(from: string | undefined): Promise<KubeList> {
    return this.#client.get<KubeList>(this.#path, {
      query: { ...this.#filter, limit: pageSize, continue: from },
      signal: this.#stop.signal,
      timeoutMs: 60_000,
      ...(this.kind.isMetadataOnly && { accept: metadataOf('PartialObjectMetadataList') }),
    })
  }

  async #follow(): Promise<void> {
    const began = performance.now()
    const query = {
      ...this.#filter,
      resourceVersion: this.#resume,
      // Random, so that not all streams of all replicas end at the same time.
      timeoutSeconds: Math.round(300 + Math.random() * 300),
    }
    const accept = this.kind.isMetadataOnly ? metadataOf('PartialObjectMetadata') : undefined
    const signal = AbortSignal.any([this.#stop.signal, this.#turn.signal])
    const stream = this.#client.watch(this.#path, query, signal, {
      ...(accept && { accept }),
      onOpen: () => this.#sink.state(this.kind, { state: 'following' }),
    })
    for await (const { type, object } of stream) {
      this.#noteEvent()
      if (type !== 'BOOKMARK') {
        const change = type === 'DELETED' ? 'delete' : 'put'
        this.#sink.changed(this.kind, this.#version, change, object)
      }
      this.#resume = object.metadata.resourceVersion ?? this.#resume
    }
    // Waits, in case the server ends every stream right after it begins.
    if (performance.now() - began < 1_000) await this.#wait(this.#backoff.next())
  }

  #noteEvent(): void {
    this.lastEventAt = performance.now()
    this.#backoff.reset()
  }

  async #recover(thrown: unknown): Promise<void> {
    const error = thrown instanceof KubeError ? thrown : new KubeError(0, '', String(thrown))
    if (error.isExpired) {
      this.#resume = undefined
      await this.#wait(50 + Math.random() * 200)
      return
    }
    if (error.isNotFound && this.kind.isOptional && (await this.#isAbsent())) return
    this.#sink.state(this.kind, { state: 'failing', error })
    await this.#wait(this.#backoff.next(error.retryAfterMs))
  }

  /** After a 404: switches to another served version, or waits if there is none. False if it did neither. */
  async #isAbsent(): Promise<boolean> {
    const { group, plural, versions } = this.kind
    const served = await servedVersions(this.#client, `${plural}.${group}`)
    if (served === undefined) return false
    const version = versions.find((one) => served.includes(one))
    this.#resume = undefined
    if (version !== undefined && version !== this.#version) {
      this.#version = version
      return true
    }
    // The CRD serves this version, but the API server does not yet.
    if (version !== undefined) return false
    this.#sink.listing(this.kind, this.#version).finish()
    this.#sink.state(this.kind, { state: 'absent' })
    for (const resolve of this.#waiting.splice(0)) resolve()
    await this.#wait(60_000)
    return true
  }

  get #path(): string {
    return collectionPath(pathOf(this.kind, this.#version))
  }

  get #filter(): Query {
    const { fieldSelector, labelSelector } = this.kind
    return { fieldSelector, labelSelector }
  }

  async #wait(waitMs: number): Promise<void> {
    this.#pause = new AbortController()
    const signal = AbortSignal.any([this.#stop.signal, this.#pause.signal])
    await after(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

interface Definition {
  readonly spec: {
    readonly versions: readonly { readonly name: string; readonly served: boolean }[]
  }
}

const definitionsPath = 'apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** Returns the versions that a CRD serves: none if it does not exist, undefined if the request fails. */
async function servedVersions(
  client: KubeClient,
  name: string,
): Promise<readonly string[] | undefined> {
  try {
    const { spec } = await client.get<Definition>(`${definitionsPath}/${name}`)
    return spec.versions.filter(({ served }) => served).map((version) => version.name)
  } catch (error) {
    return error instanceof KubeError && error.isNotFound ? [] : undefined
  }
}
