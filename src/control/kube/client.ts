/** A small client of the Kubernetes API: requests, pages and watch streams. */
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { durationText } from '../../ground/base/duration.ts'
import { request as httpRequest } from '../../ground/base/node-http.ts'
import type { KubernetesCluster } from './cluster.ts'
import { errorOf, KubeError } from './error.ts'
import { linesOf } from './lines.ts'
import type { ApiPath } from './paths.ts'

/** An object of the Kubernetes API. */
export interface KubeObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: KubeMeta
  readonly [field: string]: unknown
}

interface KubeMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly ownerReferences?: readonly {
    readonly kind: string
    readonly name: string
    readonly uid: string
    readonly controller?: boolean
  }[]
  readonly managedFields?: readonly {
    readonly manager?: string
    readonly operation?: string
    readonly subresource?: string
    readonly fieldsV1?: unknown
  }[]
}

/** The part of an object in the cluster that a status writer uses. */
export interface LiveObject {
  readonly kind: string
  readonly path: ApiPath
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  readonly isDeleting: boolean
  readonly status: Readonly<Record<string, unknown>> | undefined
}

export interface KubeList {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string }
  readonly items: readonly KubeObject[] | null
}

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  readonly object: KubeObject
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

interface RequestOptions {
  readonly query?: Query
  readonly body?: unknown
  readonly contentType?: string
  readonly accept?: string
  readonly signal?: AbortSignal
  /** Timeout for the whole response, in milliseconds. */
  readonly timeoutMs?: number
}

interface WatchOptions {
  readonly accept?: string
  /** Called when the server has accepted the watch. */
  readonly onOpen?: () => void
  /** Timeout for the head of the response, or for a whole response that refuses the watch. In milliseconds. */
  readonly openTimeoutMs?: number
}

const patchTypes = {
  merge: 'application/merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

/** The field manager of our fields in managedFields. */
export const fieldManager = 'sluice.dev/gateway-controller'

const defaultTimeoutMs = 30_000
/** A watch without data for this long is dead: bookmarks come about once a minute. */
const silenceMs = 150_000

/**
 * Client of one API server. Every method rejects with a `KubeError`, which has the status and reason of
 * the response, or status 0 if there was none.
 */
export class KubeClient {
  readonly #cluster: KubernetesCluster

  constructor(cluster: KubernetesCluster) {
    this.#cluster = cluster
  }

  /** Namespace of the kubeconfig's context or of the pod. */
  get namespace(): string | undefined {
    return this.#cluster.namespace
  }

  get<T = KubeObject>(path: string, options: RequestOptions = {}): Promise<T> {
    return this.request<T>('GET', path, options)
  }

  create<T = KubeObject>(path: string, body: unknown, timeoutMs?: number): Promise<T> {
    return this.request<T>('POST', path, { body, query: { fieldManager }, ...limited(timeoutMs) })
  }

  /** Replaces an object; the resourceVersion in the body must be the current one. */
  replace<T = KubeObject>(path: string, body: unknown, timeoutMs?: number): Promise<T> {
    return this.request<T>('PUT', path, { body, query: { fieldManager }, ...limited(timeoutMs) })
  }

  /** Server-side apply, which takes over fields of other managers. With `isDry`, nothing changes. */
  apply<T = KubeObject>(path: string, body: unknown, { isDry = false } = {}): Promise<T> {
    const query = { fieldManager, force: true, ...(isDry && { dryRun: 'All' }) }
    return this.request<T>('PATCH', path, { body, query, contentType: patchTypes.apply })
  }

  /** Deletes an object if it still has this uid. Kubernetes deletes the objects that it owns later. */
  remove(path: string, uid: string): Promise<unknown> {
    const body = { preconditions: { uid }, propagationPolicy: 'Background' }
    return this.request('DELETE', path, { body })
  }

  /**
   * Merges fields into the status of an object, if the object still has this resourceVersion.
   * @throws KubeError 409 if the object has changed since
   */
  patchStatus(path: string, resourceVersion: string, status: unknown): Promise<KubeObject> {
    const body = { metadata: { resourceVersion }, status }
    const query = { fieldManager }
    return this.request('PATCH', `${path}/status`, { body, query, contentType: patchTypes.merge })
  }

  /** Sends a request and parses the response. */
  request<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    return withFreshToken((isFresh) => this.#once<T>(method, path, options, isFresh))
  }

  /** The time of the API server to the second, in milliseconds since 1970; NaN if it does not say. */
  async serverDate(): Promise<number> {
    const signal = AbortSignal.timeout(defaultTimeoutMs)
    try {
      const response = await this.#open('GET', 'version', { signal }, false)
      await readAll(response)
      return Date.parse(response.headers.date ?? '')
    } catch (cause) {
      throw asKubeError(cause)
    }
  }

  async #once<T>(
    method: string,
    path: string,
    options: RequestOptions,
    isFresh: boolean,
  ): Promise<T> {
    const { timeoutMs = defaultTimeoutMs } = options
    const limit = AbortSignal.timeout(timeoutMs)
    const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal])
    try {
      const response = await this.#open(method, path, { ...options, signal }, isFresh)
      const body = parse(response, await readAll(response))
      const { statusCode = 0, headers } = response
      if (statusCode >= 300) throw errorOf(statusCode, body, headers['retry-after'])
      return body as T
    } catch (cause) {
      throw limit.aborted ? timeoutError(timeoutMs, cause) : asKubeError(cause)
    }
  }

  /**
   * Yields the events of a collection from a resourceVersion on, including bookmarks. Returns when the
   * stream ends. Throws if the server reports an error in the stream, or if the signal is aborted.
   */
  async *watch(
    path: string,
    query: Query,
    signal: AbortSignal,
    { accept, onOpen, openTimeoutMs = defaultTimeoutMs }: WatchOptions = {},
  ): AsyncGenerator<WatchEvent> {
    const own = new AbortController()
    const all = AbortSignal.any([own.signal, signal])
    const late = timeoutError(openTimeoutMs)
    const limit = setTimeout(() => own.abort(late), openTimeoutMs)
    try {
      const watching = { ...query, watch: true, allowWatchBookmarks: true }
      const options = { query: watching, signal: all, ...(accept && { accept }) }
      const response = await withFreshToken((isFresh) => this.#openWatch(path, options, isFresh))
      clearTimeout(limit)
      onOpen?.()
      response.socket.setKeepAlive(true, 15_000)
      response.setTimeout(silenceMs, () => response.destroy(new Error('the stream fell silent')))
      for await (const line of linesOf(response)) {
        const { type, object } = JSON.parse(line) as { type: string; object: KubeObject }
        if (type === 'ERROR') throw errorOf(0, object)
        yield { type, object } as WatchEvent
      }
    } catch (cause) {
      throw own.signal.aborted ? late : asKubeError(cause)
    } finally {
      clearTimeout(limit)
      own.abort()
    }
  }

  async #openWatch(
    path: string,
    options: RequestOptions,
    isFresh: boolean,
  ): Promise<IncomingMessage> {
    const response = await this.#open('GET', path, options, isFresh)
    const { statusCode = 0, headers } = response
    if (statusCode === 200) return response
    throw errorOf(statusCode, parse(response, await readAll(response)), headers['retry-after'])
  }

  async #open(
    method: string,
    path: string,
    { query = {}, body, contentType = 'application/json', accept, signal }: RequestOptions,
    isFresh: boolean,
  ): Promise<IncomingMessage> {
    // A plugin that supplies the credentials may hang too.
    const credentials = await orAborted(this.#cluster.credentials(isFresh), signal)
    const url = urlOf(this.#cluster.server, path, query)
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const headers = {
      ...credentials.headers,
      accept: accept ?? 'application/json',
      'user-agent': 'sluice',
      ...(payload && { 'content-type': contentType, 'content-length': payload.length }),
    }
    const { agent, auth } = credentials
    const send = url.protocol === 'http:' ? httpRequest : httpsRequest
    return new Promise((resolve, reject) => {
      const options = { method, headers, agent, ...(auth && { auth }), ...(signal && { signal }) }
      const outgoing = send(url, options, resolve)
      outgoing.once('error', reject)
      outgoing.end(payload)
    })
  }
}

const limited = (timeoutMs: number | undefined) => (timeoutMs === undefined ? {} : { timeoutMs })

/** Repeats an attempt once with a token that is read again, since a refused one may have been renewed. */
async function withFreshToken<T>(attempt: (isFresh: boolean) => Promise<T>): Promise<T> {
  try {
    return await attempt(false)
  } catch (error) {
    if (!(error instanceof KubeError) || error.status !== 401) throw error
    return attempt(true)
  }
}

function urlOf(server: URL, path: string, query: Query): URL {
  const url = new URL(path.replace(/^\//, ''), server)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, String(value))
  }
  return url
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function parse({ headers }: IncomingMessage, text: string): unknown {
  return (headers['content-type'] ?? '').includes('json') ? JSON.parse(text) : text
}

/** Settles as the work does, but rejects at once if the signal is aborted; the work is not cancelled. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

const timeoutError = (limitMs: number, cause?: unknown) =>
  new KubeError(0, 'Timeout', `no answer within ${durationText(limitMs)}`, { cause })

function asKubeError(cause: unknown): KubeError {
  if (cause instanceof KubeError) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  return new KubeError(0, '', message || 'no answer', { cause })
}
