/** Targets of MCP backends: as they are written, and the Services that selectors find. */
import type { ServiceSpec } from '../../api/core-kinds.ts'
import type { McpBackend, McpSelector } from '../../api/gateway-backend.ts'
import { ownGroup } from '../../api/names.ts'
import { matchesSelector } from '../../base/label-selector.ts'
import type { McpProtocol, McpTarget } from '../../model/mcp-targets.ts'
import type { ObjectName } from '../../model/names.ts'
import type { Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { namespaceLabels } from './gateway.ts'

/** Path of a Service's MCP servers, where it is not the default of their protocol. */
const pathAnnotation = `${ownGroup}/mcp-path`
/** Name of a Service's target, where it is not `service-port`. */
const nameAnnotation = `${ownGroup}/mcp-target-name`

const protocolOfPort: Readonly<Record<string, McpProtocol>> = {
  [`${ownGroup}/mcp`]: 'StreamableHTTP',
  [`${ownGroup}/mcp-sse`]: 'SSE',
}
const defaultPaths: Readonly<Record<McpProtocol, string>> = { StreamableHTTP: '/mcp', SSE: '/sse' }

interface FoundTargets {
  readonly targets: readonly McpTarget[]
  /** What users should know; nothing of it keeps the backend from being served. */
  readonly notes: readonly string[]
}

/** All targets, in the order of their entries; those of a selector by namespace, name and port. */
export function findMcpTargets(
  { targets: entries = [] }: McpBackend,
  namespace: string,
  read: Reader,
): FoundTargets {
  const found: McpTarget[] = []
  const notes: string[] = []
  for (const [at, { name, selector, static: fixed }] of entries.entries()) {
    if (fixed !== undefined) found.push(staticTarget(name, fixed))
    if (selector === undefined) continue
    const place = `spec.mcp.targets[${at}].selector`
    const services = selectServices(selector, namespace, read)
    if (services.length === 0) notes.push(`${place} selects no Service`)
    for (const service of services) found.push(...targetsOf(name, service, place, notes))
  }
  return { targets: withoutDuplicates(found, notes), notes }
}

type StaticSpec = NonNullable<NonNullable<McpBackend['targets']>[number]['static']>

function staticTarget(name: string, spec: StaticSpec): McpTarget {
  const { host, port, path, protocol = 'StreamableHTTP' } = spec
  return {
    name,
    sections: [name],
    protocol,
    path: rooted(path ?? defaultPaths[protocol]),
    destination: { type: 'static', host, port },
  }
}

const rooted = (path: string): string => (path.startsWith('/') ? path : `/${path}`)

function selectServices(
  { namespaces, services }: McpSelector,
  own: string,
  read: Reader,
): ObjectState[] {
  const candidates =
    namespaces === undefined
      ? read.index('services', own)
      : read
          .index('services', '')
          .filter(({ ref }) => matchesSelector(namespaces, namespaceLabels(ref.namespace, read)))
  return candidates.filter(({ object }) => matchesSelector(services, object?.metadata.labels ?? {}))
}

type PortSpec = NonNullable<ServiceSpec['ports']>[number]

function targetsOf(
  entry: string,
  { ref, object }: ObjectState,
  place: string,
  notes: string[],
): McpTarget[] {
  if (object === undefined) return []
  const label = `Service ${ref.namespace}/${ref.name}`
  const spec = specOf<'Service'>(object)
  if (spec.type === 'ExternalName') {
    notes.push(`${place}: ${label} is of type ExternalName, which has no endpoints`)
    return []
  }
  const ports = (spec.ports ?? []).filter(({ protocol = 'TCP' }) => protocol === 'TCP')
  const marked = ports.filter(({ appProtocol }) => protocolOf(appProtocol) !== undefined)
  const chosen = marked.length > 0 || ports.length !== 1 ? marked : ports
  if (chosen.length === 0) {
    notes.push(
      `${place}: no port of ${label} has appProtocol ${ownGroup}/mcp or ${ownGroup}/mcp-sse`,
    )
  }
  const { [pathAnnotation]: path, [nameAnnotation]: name } = object.metadata.annotations ?? {}
  const given = name === undefined || isTargetName(name) ? name : undefined
  if (name !== given) notes.push(`${place}: ${label}: ${nameAnnotation} is not a name: ${name}`)
  return chosen.map((port) => serviceTarget(entry, ref, port, { path, name: given }))
}

const protocolOf = (appProtocol: string | undefined): McpProtocol | undefined =>
  protocolOfPort[appProtocol?.toLowerCase() ?? '']

/** As for targets that are written: no underscore, which stands between target and tool. */
const isTargetName = (name: string): boolean =>
  name.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)

function serviceTarget(
  entry: string,
  { namespace, name: service }: ObjectName,
  { port, name: portName = '', appProtocol }: PortSpec,
  { path, name }: { readonly path: string | undefined; readonly name: string | undefined },
): McpTarget {
  const protocol = protocolOf(appProtocol) ?? 'StreamableHTTP'
  const byPort = `${service}-${portName === '' ? port : portName}`
  return {
    name: name ?? byPort,
    sections: [...new Set([entry, byPort])],
    protocol,
    path: rooted(path ?? defaultPaths[protocol]),
    destination: { type: 'service', namespace, name: service, port },
  }
}

/** A Service that several entries select is one target; names that are taken get longer. */
function withoutDuplicates(found: readonly McpTarget[], notes: string[]): McpTarget[] {
  const byDestination = new Map<string, McpTarget>()
  for (const target of found) {
    const { destination } = target
    const key =
      destination.type === 'service'
        ? `${destination.namespace}/${destination.name}:${destination.port}`
        : `entry ${target.name}`
    const before = byDestination.get(key)
    const sections = [...new Set([...(before?.sections ?? []), ...target.sections])]
    byDestination.set(key, { ...(before ?? target), sections })
  }
  const taken = new Set<string>()
  return [...byDestination.values()].flatMap((target) => {
    const { destination, name } = target
    const longer = destination.type === 'service' ? `${destination.namespace}-${name}` : name
    const free = [name, longer].find((one) => !taken.has(one))
    if (free === undefined) {
      notes.push(`another target is called ${name} as well: this one is left out`)
      return []
    }
    taken.add(free)
    return [{ ...target, name: free }]
  })
}
