/** The data of a console server. Every request carries the key of this page. */
import type { SeriesAnswer } from '../../src/past/series/answer.ts'
import { chunksOf, linesOf } from '../log/lines.ts'
import type { StoredState } from '../log/stored-states.ts'
import { readMetrics, type Sample } from './prometheus.ts'

/** What the server shows, and what it offers. */
export interface About {
  readonly version: string
  readonly foldVersion: string
  /** Whether a gateway or controller runs in the process of the server. */
  readonly isLive: boolean
  /** Whether the log is an export, which `export` returns as a whole. */
  readonly isExport: boolean
  /** Who has signed in. */
  readonly person: string
  readonly log?: { readonly first: number; readonly last: number }
  readonly offers: {
    readonly decisions: boolean
    readonly metrics: boolean
    readonly series: boolean
    readonly commands: boolean
    /** Whether pages may send requests through the gateway. */
    readonly send: boolean
    /** Whether this person may change something. */
    readonly actions: boolean
  }
}

/** A state that the log has stored. */
type StateInfo = Pick<StoredState, 'position' | 'foldVersion'>

/** Number of positions in one request. */
const positionsAtOnce = 200

/** What a command printed. */
interface CommandOutput {
  readonly exitCode: number
  readonly output: string
  readonly reports: readonly string[]
}

const keyName = 'sluice-console-key'
const returnName = 'sluice-console-return'

/**
 * Moves the key from the fragment of the URL into the storage of this origin, so that other tabs have it and
 * copied links do not.
 */
export function takeKey(): string | undefined {
  const [, kind, key = ''] = /^#([ks])=([\w-]+)$/.exec(location.hash) ?? []
  if (kind === 'k') {
    localStorage.setItem(keyName, key)
    history.replaceState(null, '', location.pathname)
  } else if (kind === 's') {
    // The session of a person, who began to sign in at another place of the console.
    keepToken(key)
    history.replaceState(
      null,
      '',
      `${location.pathname}${sessionStorage.getItem(returnName) ?? ''}`,
    )
    sessionStorage.removeItem(returnName)
  }
  return sessionStorage.getItem(keyName) ?? localStorage.getItem(keyName) ?? undefined
}

/** Remembers the token of a person for this tab only. */
export const keepToken = (token: string): void => sessionStorage.setItem(keyName, token)

/** Leaves for the sign-in at the provider, and comes back to this place. */
export function beginSignIn(): void {
  sessionStorage.setItem(returnName, location.hash)
  location.assign('sign-in')
}

export function forgetToken(): void {
  const key = sessionStorage.getItem(keyName) ?? ''
  sessionStorage.removeItem(keyName)
  const headers = { authorization: `Bearer ${key}` }
  const ended = fetch('api/sign-out', { method: 'POST', headers }).catch(() => undefined)
  ended.then(() => location.reload())
}

export const hasToken = (): boolean => sessionStorage.getItem(keyName) !== null

export type SignInMethod = 'kubernetes' | 'oidc'

/** How people sign in to the process that serves this page; undefined if by its URL, or if no process does. */
export async function signInMethod(): Promise<SignInMethod | undefined> {
  const response = await fetch('api/sign-in').catch(() => undefined)
  const isJson = response?.headers.get('content-type')?.startsWith('application/json')
  if (response?.ok !== true || isJson !== true) return undefined
  return ((await response.json()) as { readonly method?: SignInMethod }).method
}

export const noAnswer = 'The process that serves this page does not answer.'

/** Calls `use` when another tab has taken a new key: the URL of a process that was started again was opened. */
export function onNewKey(use: () => void): void {
  addEventListener('storage', ({ key, newValue }) => {
    if (key === keyName && newValue !== null) use()
  })
}

/** The server answered with an error, or not at all. */
export class ServerError extends Error {
  /** Undefined if the server did not answer. */
  readonly status: number | undefined

  constructor(status: number | undefined, message: string) {
    super(message)
    this.status = status
  }
}

export class ConsoleServer {
  readonly #key: string

  constructor(key: string) {
    this.#key = key
  }

  async about(): Promise<About> {
    return (await (await this.get('about')).json()) as About
  }

  /** The states that the log has stored, in order. @throws ServerError */
  async states(): Promise<StateInfo[]> {
    return (await (await this.get('snapshots')).json()) as StateInfo[]
  }

  /** A stored state. @throws ServerError if it is gone */
  async state({ position, foldVersion }: StateInfo): ReturnType<StoredState['load']> {
    const query = `at=${position}&foldVersion=${encodeURIComponent(foldVersion)}`
    const { fold } = await (await this.get(`snapshot?${query}`)).json()
    return fold
  }

  /** The lines of events at ascending positions. @throws ServerError */
  async *eventsAt(positions: readonly number[]): AsyncGenerator<Uint8Array[]> {
    const [first = 0] = positions
    const last = positions.at(-1) ?? first
    const isRange = last - first + 1 === positions.length
    const size = isRange ? positions.length : positionsAtOnce
    for (let at = 0; at < positions.length; at += size) {
      const query = isRange
        ? `from=${first}&to=${last}`
        : `at=${positions.slice(at, at + size).join(',')}`
      const { body } = await this.get(`events?${query}`)
      if (body !== null) yield* linesOf(chunksOf(body))
    }
  }

  /** Time series of the process. @throws ServerError */
  async series(query: URLSearchParams, signal: AbortSignal): Promise<SeriesAnswer> {
    return (await (await this.get(`series?${query}`, signal)).json()) as SeriesAnswer
  }

  /** The metrics of the process. @throws ServerError */
  async metrics(signal: AbortSignal): Promise<Sample[]> {
    return readMetrics(await (await this.get('metrics', signal)).text())
  }

  /** The JSON values of an answer, one per line, as they arrive. @throws ServerError */
  async *lines<Value>(path: string, signal: AbortSignal): AsyncGenerator<Value> {
    const { body } = await this.get(path, signal)
    if (body === null) return
    const decoder = new TextDecoder()
    for await (const lines of linesOf(chunksOf(body))) {
      for (const line of lines) if (line.length > 0) yield JSON.parse(decoder.decode(line)) as Value
    }
  }

  /** Runs a command that only reads. @throws ServerError if it cannot be run */
  async run(name: string, options: object, signal?: AbortSignal): Promise<CommandOutput> {
    return (await (await this.post(`commands/${name}`, options, signal)).json()) as CommandOutput
  }

  /** Runs a command that changes something. @throws ServerError if it cannot be run */
  async act(name: string, options: object): Promise<CommandOutput> {
    return (await (await this.post(`actions/${name}`, options)).json()) as CommandOutput
  }

  /** @throws ServerError */
  post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
    return this.#send(path, {
      method: 'POST',
      body: JSON.stringify(body),
      ...(signal && { signal }),
    })
  }

  /** @throws ServerError */
  get(path: string, signal?: AbortSignal): Promise<Response> {
    return this.#send(path, signal === undefined ? {} : { signal })
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#key}` }
    const response = await fetch(`api/${path}`, { ...init, headers }).catch((error: unknown) => {
      if (init.signal?.aborted === true) throw error
      throw new ServerError(undefined, noAnswer)
    })
    if (response.ok) return response
    throw new ServerError(response.status, (await response.text()).trim())
  }
}
