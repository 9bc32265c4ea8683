/** MCP servers: where they are, and how policies find them. */
import { isIP } from 'node:net'
import { bareHost } from '../../../base/bare-host.ts'
import type { McpTarget } from '../../../model/mcp-targets.ts'
import { type NamedTarget, nameTarget } from '../../../proxy/config/rules.ts'
import type { BackendName } from '../../../proxy/request/backend-kind.ts'
import type { EndpointSet } from '../../../proxy/upstream/choose.ts'
import { plainAddress, UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'

/** One target of a backend. Lives as long as the target stays what it is. */
export interface McpTargetEntry {
  readonly target: McpTarget
  /** By which policies are merged; one for each target. */
  readonly named: NamedTarget
  /** The one endpoint of a static target with an address; undefined for names and Services. */
  readonly endpoints: EndpointSet | undefined
}

export interface McpBackend {
  readonly targets: readonly McpTargetEntry[]
  readonly isStateless: boolean
}

/** `before`: what the backend was; targets that have not changed keep what is known of them. */
export function compileTargets(
  backend: BackendName,
  targets: readonly McpTarget[],
  isStateless: boolean,
  before: McpBackend | undefined,
): McpBackend {
  const known = new Map(
    before?.targets.map((entry) => [JSON.stringify(entry.target), entry] as const),
  )
  return {
    targets: targets.map((one) => known.get(JSON.stringify(one)) ?? compileTarget(backend, one)),
    isStateless,
  }
}

function compileTarget({ namespace, name }: BackendName, target: McpTarget): McpTargetEntry {
  const { destination } = target
  const named = nameTarget({ type: 'backend', namespace, name })
  if (destination.type === 'service' || isIP(bareHost(destination.host)) === 0) {
    return { target, named, endpoints: undefined }
  }
  const address = plainAddress(bareHost(destination.host), destination.port)
  const all = [new UpstreamEndpoint(address)]
  return { target, named, endpoints: { preferred: all, all } }
}
