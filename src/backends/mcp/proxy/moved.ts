/**
 * Follows redirects of a server to another of its paths (307 or 308, which keep method and body, RFC 9110
 * section 15.4.8). Many frameworks redirect `/mcp` to `/mcp/`. Redirects to other hosts are not followed.
 */
import type { HeaderFields } from '../../../exchange/exchange.ts'
import type { McpTarget } from '../../../model/mcp-targets.ts'
import type { ReadyRequest } from './target-request.ts'
import type { Flow } from './transport.ts'

/** Paths learned from redirects. Dropped if the configuration changes or the path is not found. */
const paths = new WeakMap<McpTarget, string>()

/** Maximum number of redirects of one message. */
const maxRedirects = 3

/** Returns the path to which the target has redirected; undefined if it has not. */
export function learnedPath(target: McpTarget): string | undefined {
  return paths.get(target)
}

/** Returns the new path if the response is a redirect to the same server. */
function namedPath(
  status: number,
  headers: HeaderFields,
  { url: asked }: ReadyRequest,
): string | undefined {
  if (status !== 307 && status !== 308) return undefined
  const location = headers.get('location')
  if (location === undefined || !URL.canParse(location, asked)) return undefined
  const from = new URL(asked)
  const to = new URL(location, from)
  const path = `${to.pathname}${to.search}`
  return to.host === from.host && path !== `${from.pathname}${from.search}` ? path : undefined
}

/** A message that follows redirects. */
export class MovingFlow implements Flow {
  readonly #target: McpTarget
  readonly #send: (path: string | undefined) => void | Promise<void>
  #call: Flow | undefined
  #redirects = 0
  #isPaused = false
  #isClosed = false

  /**
   * `send` sends the message to the given path or, if that is undefined, to the configured path. It calls
   * `begun` with the new call.
   */
  constructor(target: McpTarget, send: (path: string | undefined) => void | Promise<void>) {
    this.#target = target
    this.#send = send
  }

  begun(call: Flow): void {
    this.#call = call
    if (this.#isClosed) call.close()
    else if (this.#isPaused) call.pause()
  }

  /** Follows a redirect. Returns false if the response is not followed and goes to the client. */
  follows(
    status: number,
    headers: HeaderFields,
    ready: ReadyRequest,
    onFailure: (error: unknown) => void,
  ): boolean {
    if (status === 404) paths.delete(this.#target)
    const path = namedPath(status, headers, ready)
    if (path === undefined || this.#redirects >= maxRedirects) return false
    this.#redirects += 1
    paths.set(this.#target, path)
    this.#call?.close()
    if (!this.#isClosed) this.#follow(path).catch(onFailure)
    return true
  }

  async #follow(path: string): Promise<void> {
    await this.#send(path)
  }

  pause(): void {
    this.#isPaused = true
    this.#call?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#call?.resume()
  }

  close(): void {
    this.#isClosed = true
    this.#call?.close()
  }
}
