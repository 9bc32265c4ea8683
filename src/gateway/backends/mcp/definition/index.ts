/** GatewayBackends of MCP servers. */
import type {
  McpKnownNames,
  McpPins,
  McpPrefixMode,
  McpTarget,
  McpToolSearch,
  McpVirtualServer,
} from '../../../../ground/model/mcp-targets.ts'
import { defineBackend } from '../../define.ts'
import { namesCondition, namesOf } from './names.ts'
import { offerProblems, searchOf, serversOf } from './offer.ts'
import { approvedCondition, pinsOf } from './pinning.ts'
import { mcpSchema } from './schema.ts'
import { stdioCondition } from './stdio.ts'
import { findMcpTargets } from './targets.ts'

declare module '../../../../ground/model/resources.ts' {
  interface Destinations {
    /** Targets in the order of the spec. Empty if there are only selectors and they match nothing. */
    readonly mcp: {
      readonly targets: readonly McpTarget[]
      readonly isStateless: boolean
      /** The approved versions of lists that were seen. Clients get any version of other lists. */
      readonly pins?: readonly McpPins[]
      /** If omitted, `Always`. */
      readonly prefixMode?: Exclude<McpPrefixMode, 'Always'>
      /** If omitted, results omit targets that fail. */
      readonly failureMode?: 'FailClosed'
      /** The names of tools and prompts that are known from the log, if not all have prefixes. */
      readonly names?: readonly McpKnownNames[]
      readonly toolSearch?: McpToolSearch
      readonly virtualServers?: readonly McpVirtualServer[]
    }
  }
}

export const mcpBackend = defineBackend({
  field: 'mcp',
  type: 'mcp',
  doc: 'MCP servers.',
  schema: mcpSchema,
  derive(spec, reader) {
    const { targets, notes, problems } = findMcpTargets(spec, reader)
    const services = targets.flatMap(({ destination }) =>
      destination.type === 'service' ? [destination] : [],
    )
    const sections = targets.flatMap((target) => target.sections)
    const lists = reader.observedLists()
    const pins = pinsOf(targets, lists)
    const { prefixMode = 'Always', failureMode } = spec
    const names = prefixMode === 'Always' ? [] : namesOf(targets, lists)
    const conditions = [
      approvedCondition(targets, lists),
      namesCondition(prefixMode, targets, lists),
      stdioCondition(targets, reader),
    ].flatMap((one) => one ?? [])
    const toolSearch = searchOf(spec.toolSearch)
    const virtualServers = serversOf(spec.virtualServers)
    return {
      destination: {
        targets,
        isStateless: spec.sessionRouting === 'Stateless',
        ...(pins.length > 0 && { pins }),
        ...(prefixMode !== 'Always' && { prefixMode }),
        ...(failureMode === 'FailClosed' && { failureMode }),
        ...(names.length > 0 && { names }),
        ...(toolSearch && { toolSearch }),
        ...(virtualServers.length > 0 && { virtualServers }),
      },
      notes,
      problems: [...problems, ...offerProblems(spec.targets, spec.virtualServers)],
      ...(conditions.length > 0 && { conditions }),
      ...(targets.length > 0 && { found: { sections, services } }),
    }
  },
  parts: ({ targets }) =>
    targets.map(({ name, static: fixed }, at) => ({
      section: name,
      path: `targets[${at}].static.policies`,
      policies: fixed?.policies,
    })),
  hasOpenParts: ({ targets }) => targets.some(({ selector }) => selector !== undefined),
  policy: { field: 'mcp', worksOnServices: true },
  streamProblem: () => 'it speaks HTTP only',
  choosesEndpoints: 'MCP has sessions of its own',
})
