/** Calls to an identity provider. Time and size are limited, and redirects are not followed. */

/** Ends `sluice idp prepare` with exit code 1. The message is one line and contains no credentials. */
export class IdentityProviderError extends Error {}

/** Maximum number of characters of a response that an error message quotes. */
const maxQuote = 200

/** The credentials of a run. `hide` removes them from quoted responses, because a server may repeat them. */
export class Credentials {
  readonly #known = new Set<string>()

  /** Remembers a credential and returns it. */
  add(credential: string): string {
    if (credential !== '') this.#known.add(credential)
    return credential
  }

  /** Returns the text on one line, shortened, with every known credential replaced by a placeholder. */
  hide(text: string): string {
    let shown = text
    // Longest first, because a credential may be part of another.
    for (const credential of [...this.#known].sort((a, b) => b.length - a.length)) {
      for (const form of [credential, JSON.stringify(credential).slice(1, -1)]) {
        shown = shown.replaceAll(form, '(credential)')
      }
    }
    const line = shown.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim()
    return line.length > maxQuote ? `${line.slice(0, maxQuote)} ...` : line
  }
}

/** Maximum size of a response. Valid responses are much smaller. */
const maxResponseBytes = 1 << 20

export interface ProviderCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Path and query below the base address. */
  readonly path: string
  readonly bearer?: string
  /** Request body, sent as JSON. */
  readonly json?: unknown
  /** Request body, sent as form fields. */
  readonly form?: Readonly<Record<string, string>>
}

export interface Server {
  /** Base address without a trailing slash. */
  readonly url: string
  /** Timeout from the start of the request to the last byte of the response. */
  readonly timeoutMs: number
  readonly credentials: Credentials
}

/** A complete response to a call, with any status. */
export class ProviderResponse {
  readonly status: number
  readonly #text: string
  readonly #server: Server
  /** The name of the call in messages, such as `POST /realms/main/...`. */
  readonly #call: string

  constructor(server: Server, call: string, status: number, text: string) {
    this.#server = server
    this.#call = call
    this.status = status
    this.#text = text
  }

  get isSuccess(): boolean {
    return this.status >= 200 && this.status < 300
  }

  /** @throws IdentityProviderError if the response is not JSON */
  json(): unknown {
    try {
      return JSON.parse(this.#text)
    } catch {
      throw this.problem('is not JSON')
    }
  }

  /** @throws IdentityProviderError if the field is absent or empty */
  textField(field: string, object: unknown = this.json()): string {
    const value = (object as Readonly<Record<string, unknown>> | null)?.[field]
    if (typeof value === 'string' && value !== '') return value
    throw this.problem(`has no text in '${field}'`)
  }

  problem(text: string): IdentityProviderError {
    return new IdentityProviderError(`the answer to ${this.#call} ${text}`)
  }

  /** Creates an error with the call, its status, the explanation of the server and `advice`. */
  refusal(advice = ''): IdentityProviderError {
    const quoted = this.#server.credentials.hide(explanationOf(this.#text))
    const explanation = quoted === '' ? '' : ` (${quoted})`
    const isRedirect = this.status >= 300 && this.status < 400
    const next = isRedirect
      ? 'it redirects; give the address of the server itself as --url'
      : advice
    const more = next === '' ? '' : `: ${next}`
    return new IdentityProviderError(`${this.#call} answers ${this.status}${explanation}${more}`)
  }
}

/** Returns the explanation in an error response, from the usual fields; empty if there is none. */
function explanationOf(text: string): string {
  try {
    const body = JSON.parse(text) as Readonly<Record<string, unknown>> | null
    const known = [body?.error_description, body?.errorMessage, body?.error]
    return known.find((entry) => typeof entry === 'string') ?? ''
  } catch {
    return ''
  }
}

function bodyOf(call: ProviderCall): { body?: string | URLSearchParams; type?: string } {
  if (call.form !== undefined) return { body: new URLSearchParams(call.form) }
  if (call.json !== undefined) return { body: JSON.stringify(call.json), type: 'application/json' }
  return {}
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > maxResponseBytes)
      throw new Error(`the answer is longer than ${maxResponseBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Returns the message of the innermost cause, because that of `fetch` itself is always "fetch failed". */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause !== undefined) return reasonOf(error.cause)
  const { code } = error as NodeJS.ErrnoException
  return error.message === '' ? (code ?? error.name) : error.message
}

/**
 * Sends a call and reads the whole response, whatever its status.
 * @throws IdentityProviderError if the server cannot be reached, is too slow or sends too much
 */
export async function exchange(server: Server, call: ProviderCall): Promise<ProviderResponse> {
  const { method, path, bearer } = call
  const { body, type } = bodyOf(call)
  const headers = new Headers({ accept: 'application/json' })
  if (type !== undefined) headers.set('content-type', type)
  if (bearer !== undefined) headers.set('authorization', `Bearer ${bearer}`)
  const name = `${method} ${path}`
  try {
    const response = await fetch(server.url + path, {
      method,
      headers,
      body,
      // Redirects are not followed, so that credentials are sent to the given address only.
      redirect: 'manual',
      signal: AbortSignal.timeout(server.timeoutMs),
    })
    return new ProviderResponse(server, name, response.status, await readText(response))
  } catch (error) {
    const reason = server.credentials.hide(reasonOf(error))
    throw new IdentityProviderError(`${name} failed at ${server.url}: ${reason}`)
  }
}
