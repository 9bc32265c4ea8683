/** GatewayBackends of MCP servers. */
import type { McpPins, McpTarget } from '../../../../ground/model/mcp-targets.ts'
import { defineBackend } from '../../define.ts'
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
    const conditions = [approvedCondition(targets, lists), stdioCondition(targets, reader)].filter(
      (one) => one !== undefined,
    )
    return {
      destination: {
        targets,
        isStateless: spec.sessionRouting === 'Stateless',
        ...(pins.length > 0 && { pins }),
      },
      notes,
      problems,
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
