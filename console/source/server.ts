/** The data of a console server. Every request carries the key of this page. */

/** What the server shows, and what it offers. */
export interface About {
  readonly version: string
  readonly foldVersion: string
  /** Whether a gateway or controller runs in the process of the server. */
  readonly isLive: boolean
  /** Whether the log is an export, which `export` returns as a whole. */
  readonly isExport: boolean
  readonly log?: { readonly first: number; readonly last: number }
  readonly offers: {
    readonly decisions: boolean
    readonly metrics: boolean
    readonly commands: boolean
  }
}

const keyName = 'sluice-console-key'

/**
 * Moves the key from the fragment of the URL into the storage of this origin, so that other tabs have it and
 * copied links do not.
 */
export function takeKey(): string | undefined {
  const [, key] = /^#k=([\w-]+)$/.exec(location.hash) ?? []
  if (key !== undefined) {
    localStorage.setItem(keyName, key)
    history.replaceState(null, '', location.pathname)
  }
  return localStorage.getItem(keyName) ?? undefined
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

  /** @throws ServerError */
  async get(path: string, signal?: AbortSignal): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#key}` }
    const response = await fetch(`api/${path}`, { headers, ...(signal && { signal }) }).catch(
      (error: unknown) => {
        if (signal?.aborted === true) throw error
        throw new ServerError(undefined, 'The process that serves this page does not answer.')
      },
    )
    if (response.ok) return response
    throw new ServerError(response.status, (await response.text()).trim())
  }
}
