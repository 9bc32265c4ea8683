/**
 * Servers that answer a message by naming another path of their own (307 or 308, which keep method
 * and body, RFC 9110 section 15.4.8). Clients of such a server follow, so the gateway does; many
 * frameworks redirect `/mcp` to `/mcp/`. Other hosts are never followed: nobody has configured them.
 */
import type { HeaderFields } from '../../../exchange/exchange.ts'
import type { McpTarget } from '../../../model/mcp-targets.ts'
import type { ReadyRequest } from './target-request.ts'
import type { Flow } from './transport.ts'

/** Until the configuration changes, or the path is not there any more. */
const paths = new WeakMap<McpTarget, string>()

/** Redirects of one message that are followed. */
const mostHops = 3

/** Where a target is, if it has told; undefined: where it is configured. */
export function toldPath(target: McpTarget): string | undefined {
  return paths.get(target)
}

/** The path that an answer names on the same server; undefined where there is none to follow. */
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

/** A message on its way, however often its server sends it on. */
export class MovingFlow implements Flow {
  readonly #target: McpTarget
  readonly #send: (path: string | undefined) => Promise<void>
  #call: Flow | undefined
  #hops = 0
  #isPaused = false
  #isClosed = false

  /** `send` asks the server at a path, or at the configured one, and calls `begun`. */
  constructor(target: McpTarget, send: (path: string | undefined) => Promise<void>) {
    this.#target = target
    this.#send = send
  }

  begun(call: Flow): void {
    this.#call = call
    if (this.#isClosed) call.close()
    else if (this.#isPaused) call.pause()
  }

  /** Follows an answer that says where; false where it is to be told as it is. */
  follows(
    status: number,
    headers: HeaderFields,
    ready: ReadyRequest,
    onFailure: (error: unknown) => void,
  ): boolean {
    if (status === 404) paths.delete(this.#target)
    const path = namedPath(status, headers, ready)
    if (path === undefined || this.#hops >= mostHops) return false
    this.#hops += 1
    paths.set(this.#target, path)
    this.#call?.close()
    if (!this.#isClosed) this.#send(path).catch(onFailure)
    return true
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
