/** A named subset of the targets and tools of a backend (`virtualServers`). */
import type { Exchange } from '../../../../../ground/exchange/exchange.ts'
import type { McpTarget, McpVirtualServer } from '../../../../../ground/model/mcp-targets.ts'
import { Expression } from '../../../../variables/index.ts'
import { isSelected } from '../../patterns.ts'

/** Clients of the older transport add this to the path. */
const olderEnd = '/sse'

export class VirtualServer {
  readonly name: string
  readonly path: string | undefined
  readonly #server: McpVirtualServer
  readonly #when: Expression | undefined

  constructor(server: McpVirtualServer) {
    this.name = server.name
    this.path = server.path
    this.#server = server
    this.#when = server.expression === undefined ? undefined : new Expression(server.expression)
  }

  /** Whether the client may use it. An expression that fails counts as false. */
  isFor(exchange: Exchange): boolean {
    return this.#when === undefined || this.#when.judge(exchange, isNotTrue) === true
  }

  hasTarget({ sections }: McpTarget): boolean {
    const { targets } = this.#server
    return targets.length === 0 || targets.some((name) => sections.includes(name))
  }

  /** Whether the tool with this name for clients is in it. */
  hasTool(name: string): boolean {
    return isSelected(this.#server, name)
  }
}

const isNotTrue = (result: unknown): boolean => result !== true

/**
 * Returns the virtual server for a request; `none` if there are some, but none for this client. Without servers for
 * the path, the result is undefined, and clients get the whole backend.
 */
export function chooseServer(
  servers: readonly VirtualServer[],
  path: string,
  exchange: Exchange,
): VirtualServer | 'none' | undefined {
  if (servers.length === 0) return undefined
  const asked = withoutSlash(path)
  const ends = [asked, asked.endsWith(olderEnd) ? asked.slice(0, -olderEnd.length) : asked]
  const named = servers.filter((one) => {
    const { path: end } = one
    return end !== undefined && ends.some((one) => one.endsWith(end))
  })
  const candidates = named.length > 0 ? named : servers.filter((one) => one.path === undefined)
  if (candidates.length === 0) return undefined
  return candidates.find((one) => one.isFor(exchange)) ?? 'none'
}

const withoutSlash = (path: string): string => path.replace(/\/$/, '')
