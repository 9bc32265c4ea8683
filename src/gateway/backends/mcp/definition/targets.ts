/** Targets of MCP backends: those written in the spec, and Services that match its selectors. */

import { ownGroup } from '../../../../ground/model/api-names.ts'
import type { McpProtocol, McpTarget } from '../../../../ground/model/mcp-targets.ts'
import type { BackendReader, FoundPort, FoundService } from '../../define.ts'
import { selectionOf } from './offer.ts'
import { openApiOf } from './openapi.ts'
import type { McpSpec } from './schema.ts'
import { stdioTargetOf } from './stdio.ts'

/** Annotation of a Service: the path of its MCP servers, if not the default path of their protocol. */
const pathAnnotation = `${ownGroup}/mcp-path`
/** Annotation of a Service: the name of its target, if not `service-port`. */
const nameAnnotation = `${ownGroup}/mcp-target-name`

const protocolOfPort: Readonly<Record<string, McpProtocol>> = {
  [`${ownGroup}/mcp`]: 'StreamableHTTP',
  [`${ownGroup}/mcp-sse`]: 'SSE',
}
const defaultPaths: Readonly<Record<McpProtocol, string>> = { StreamableHTTP: '/mcp', SSE: '/sse' }

interface FoundTargets {
  readonly targets: readonly McpTarget[]
  /** Notes for users about problems that do not prevent the backend from being served. */
  readonly notes: readonly string[]
  /** Problems because of which a target is left out. */
  readonly problems: readonly string[]
}

/**
 * Returns all targets in the order of their entries in the spec. The targets of one selector are sorted by
 * namespace, name and port.
 */
export function findMcpTargets({ targets: entries }: McpSpec, reader: BackendReader): FoundTargets {
  const found: McpTarget[] = []
  const notes: string[] = []
  const problems: string[] = []
  for (const [at, entry] of entries.entries()) {
    const { name, selector, static: fixed, stdio, tools, pinning = 'Off' } = entry
    const own = {
      ...(pinning !== 'Off' && { pinning }),
      ...(tools && { tools: selectionOf(tools) }),
    }
    if (stdio !== undefined) {
      const target = stdioTargetOf(name, stdio, `spec.mcp.targets[${at}].stdio`, reader)
      if (typeof target === 'string') problems.push(target)
      else found.push({ ...target, ...own })
    }
    if (fixed !== undefined) {
      const openapi = openApiOf(name, fixed, `spec.mcp.targets[${at}].static.openapi`, reader)
      notes.push(...openapi.notes)
      problems.push(...openapi.problems)
      if (openapi.problems.length > 0 || openapi.isMissing) continue
      found.push({ ...staticTarget(name, fixed), ...own, ...openapi.member })
    }
    if (selector === undefined) continue
    const place = `spec.mcp.targets[${at}].selector`
    const services = reader.services(selector)
    if (services.length === 0) notes.push(`${place} selects no Service`)
    for (const service of services) {
      found.push(...targetsOf(name, service, place, notes).map((one) => ({ ...one, ...own })))
    }
  }
  return { targets: withoutDuplicates(found, notes), notes, problems }
}

/** The base path of an API; empty for that of its document. */
const basePathOf = (path: string | undefined): string =>
  path === undefined ? '' : rooted(path.replace(/\?.*$/, ''))

type StaticSpec = NonNullable<McpSpec['targets'][number]['static']>

function staticTarget(name: string, spec: StaticSpec): McpTarget {
  const { host, port, path, openapi, endpoints, protocol = 'StreamableHTTP' } = spec
  return {
    name,
    sections: [name],
    protocol,
    path: openapi === undefined ? rooted(path ?? defaultPaths[protocol]) : basePathOf(path),
    destination: { type: 'static', host, port },
    ...(endpoints && { endpoints }),
  }
}

const rooted = (path: string): string => (path.startsWith('/') ? path : `/${path}`)

function targetsOf(
  entry: string,
  service: FoundService,
  place: string,
  notes: string[],
): McpTarget[] {
  const { spec, annotations } = service
  if (spec === undefined) return []
  const label = `Service ${service.namespace}/${service.name}`
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
  const { [pathAnnotation]: path, [nameAnnotation]: name } = annotations
  const given = name === undefined || isTargetName(name) ? name : undefined
  if (name !== given) notes.push(`${place}: ${label}: ${nameAnnotation} is not a name: ${name}`)
  return chosen.map((port) => serviceTarget(entry, service, port, { path, name: given }))
}

const protocolOf = (appProtocol: string | undefined): McpProtocol | undefined =>
  protocolOfPort[appProtocol?.toLowerCase() ?? '']

/**
 * Names in annotations follow the rule of names in the spec. They must not contain `_`, which separates
 * target and tool.
 */
const isTargetName = (name: string): boolean =>
  name.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)

function serviceTarget(
  entry: string,
  { namespace, name: service }: FoundService,
  { port, name: portName = '', appProtocol }: FoundPort,
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

/** Merges targets of the same Service port. If a name is taken, a Service's namespace is prepended. */
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
