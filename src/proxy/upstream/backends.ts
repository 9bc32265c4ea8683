import { isIP } from 'node:net'
import { bareHost } from '../../base/bare-host.ts'
import type { BackendResource, Destination } from '../../model/resources.ts'
import { plainAddress, UpstreamEndpoint } from './endpoint.ts'
import { compileTargets, type McpBackend } from './mcp-targets.ts'
import { compileProviders, type ModelBackend } from './model-providers.ts'

/** A GatewayBackend as requests need it. */
export type CompiledDestination =
  | StaticDestination
  | { readonly type: 'dynamic' }
  | ModelBackend
  | McpBackend
  | { readonly type: 'unsupported'; readonly message: string }

export interface StaticDestination {
  readonly type: 'static'
  /** Without brackets. */
  readonly host: string
  readonly port: number
  /** Absent where the host is a name, which has to be looked up. */
  readonly endpoint?: UpstreamEndpoint
}

/** GatewayBackends by `namespace/name`. */
export class BackendTable {
  readonly #backends = new Map<string, CompiledDestination>()
  readonly #mcp = new Set<string>()

  set({ namespace, name, destination }: BackendResource): void {
    const key = `${namespace}/${name}`
    const before = this.#backends.get(key)
    this.#backends.set(key, compile({ namespace, name }, destination, before))
    if (destination.type === 'mcp') this.#mcp.add(key)
    else this.#mcp.delete(key)
  }

  remove({ namespace, name }: BackendResource): void {
    this.#backends.delete(`${namespace}/${name}`)
    this.#mcp.delete(`${namespace}/${name}`)
  }

  /** Is any of them one of MCP servers? */
  get hasMcp(): boolean {
    return this.#mcp.size > 0
  }

  find(name: string): CompiledDestination | undefined {
    return this.#backends.get(name)
  }
}

function compile(
  backend: { readonly namespace: string; readonly name: string },
  destination: Destination,
  before: CompiledDestination | undefined,
): CompiledDestination {
  switch (destination.type) {
    case 'static':
      return staticDestination(destination)
    case 'ai': {
      const known = before?.type === 'ai' ? before : undefined
      return compileProviders(backend, destination.groups, known)
    }
    case 'mcp': {
      const known = before?.type === 'mcp' ? before : undefined
      return compileTargets(backend, destination.targets, destination.isStateless, known)
    }
    default:
      return destination
  }
}

function staticDestination({ host, port }: { host: string; port: number }): StaticDestination {
  const bare = bareHost(host)
  if (isIP(bare) === 0) return { type: 'static', host: bare, port }
  return {
    type: 'static',
    host: bare,
    port,
    endpoint: new UpstreamEndpoint(plainAddress(bare, port)),
  }
}
