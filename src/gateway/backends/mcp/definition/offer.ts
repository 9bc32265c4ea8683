/** What MCP backends offer to clients: selected tools of targets, virtual servers, and tool search. */
import type {
  McpToolOverride,
  McpToolSearch,
  McpToolSelection,
  McpVirtualServer,
} from '../../../../ground/model/mcp-targets.ts'
import {
  boolean,
  choice,
  type Infer,
  integer,
  list,
  object,
  optional,
  required,
  text,
} from '../../../../ground/schema/field.ts'
import { atLeastOneOf } from '../../../../ground/schema/rules.ts'
import { celExpression, sectionName, shortString } from '../../../../ground/schema/strings.ts'

const patterns = (doc: string) => optional(list(shortString, { min: 1, max: 128 }), doc)

/** Names of tools that all clients and model APIs accept. */
const toolName = text({
  name: 'McpToolName',
  min: 1,
  max: 64,
  pattern: '^[A-Za-z0-9_-]+$',
  expects: 'letters, digits, _ and -',
})

const toolAnnotations = object('McpToolAnnotations', {
  title: optional(shortString, 'Name for people.'),
  readOnlyHint: optional(boolean(), 'Whether the tool changes nothing.'),
  destructiveHint: optional(boolean(), 'Whether the tool may destroy something.'),
  idempotentHint: optional(boolean(), 'Whether a repeated call has no further effect.'),
  openWorldHint: optional(boolean(), 'Whether the tool reaches things outside of its server.'),
})

const toolOverride = object(
  'McpToolOverride',
  {
    name: required(shortString, 'Name of the tool at the server.'),
    as: optional(
      toolName,
      'Name of the tool for clients, who then cannot use the name at the server.',
    ),
    title: optional(shortString, 'Title of the tool.'),
    description: optional(text({ min: 1, max: 8192 }), 'Description of the tool for models.'),
    annotations: optional(
      toolAnnotations,
      'Hints for clients. Those that are not set stay as the server states them.',
    ),
  },
  { rules: [atLeastOneOf('as', 'title', 'description', 'annotations')] },
)

export const toolSelection = object(
  'McpToolSelection',
  {
    include: patterns(
      'Patterns of the names at the server; * matches any text. Other tools are hidden.',
    ),
    exclude: patterns('Patterns of the names of tools that are hidden.'),
    overrides: optional(
      list(toolOverride, { min: 1, max: 256, unique: { by: ['name'] } }),
      'Other names, descriptions and hints for tools.',
    ),
  },
  { rules: [atLeastOneOf('include', 'exclude', 'overrides')] },
)

export const prefixMode = choice('McpPrefixMode', {
  Always: 'each name begins with the name of its target',
  Conditional: 'only names that several targets have begin with the name of their target',
  Never: 'no name has a prefix; if several targets have a name, that of the first target is used',
})

export const failureMode = choice('McpFailureMode', {
  FailOpen: 'results omit targets that fail',
  FailClosed: 'initialize, discovery and lists fail if a target fails',
})

export const toolSearch = object('McpToolSearch', {
  enabled: optional(boolean(), { doc: 'Whether clients search for tools.', default: true }),
  pinned: patterns('Patterns of the names, as clients see them, of tools that stay in the list.'),
  limit: optional(integer({ min: 1, max: 50 }), {
    doc: 'Maximum number of tools that a search finds.',
    default: 5,
  }),
})

const urlPath = text({
  name: 'McpServerPath',
  min: 2,
  max: 256,
  pattern: '^(/[A-Za-z0-9._~-]+)+$',
  expects: 'a path such as /finance',
})

const virtualServer = object('McpVirtualServer', {
  name: required(sectionName, 'Name of the virtual server.'),
  path: optional(
    urlPath,
    'End of the request path, in whole segments. If not set, the virtual server is for paths that match no other one.',
  ),
  when: optional(
    celExpression,
    'Expression that is true for the clients that may use it. If not set, all clients.',
  ),
  targets: optional(
    list(sectionName, { min: 1, max: 64, unique: 'value' }),
    'Names of entries of targets. If not set, all targets.',
  ),
  include: patterns(
    'Patterns of the names, as clients see them, of its tools. Other tools are hidden.',
  ),
  exclude: patterns('Patterns of the names of tools that are hidden.'),
})

export const virtualServers = list(virtualServer, { min: 1, max: 64, unique: { by: ['name'] } })

export function selectionOf(spec: Infer<typeof toolSelection>): McpToolSelection {
  const { include = [], exclude = [], overrides = [] } = spec
  return {
    include,
    exclude,
    overrides: overrides.map(
      ({ annotations, ...rest }): McpToolOverride => ({
        ...rest,
        ...(annotations && { annotations: JSON.stringify(annotations) }),
      }),
    ),
  }
}

export function searchOf(spec: Infer<typeof toolSearch> | undefined): McpToolSearch | undefined {
  if (spec === undefined || spec.enabled === false) return undefined
  return { pinned: spec.pinned ?? [], limit: spec.limit ?? 5 }
}

export const serversOf = (
  spec: Infer<typeof virtualServers> | undefined,
): readonly McpVirtualServer[] =>
  (spec ?? []).map(({ when, targets = [], include = [], exclude = [], ...rest }) => ({
    ...rest,
    ...(when !== undefined && { expression: when }),
    targets,
    include,
    exclude,
  }))

/** Returns the problems of the selections of targets and virtual servers. */
export function offerProblems(
  targets: readonly {
    readonly name: string
    readonly tools?: Infer<typeof toolSelection> | undefined
  }[],
  servers: Infer<typeof virtualServers> | undefined,
): string[] {
  const problems = targets.flatMap(({ tools }, at) => {
    const names = (tools?.overrides ?? []).flatMap(({ as }) => as ?? [])
    const twice = names.find((name, n) => names.indexOf(name) !== n)
    const path = `spec.mcp.targets[${at}].tools.overrides`
    return twice === undefined ? [] : [`${path}: several tools have as: ${twice}`]
  })
  const known = new Set(targets.map(({ name }) => name))
  for (const [at, server] of (servers ?? []).entries()) {
    const unknown = server.targets?.filter((name) => !known.has(name)) ?? []
    for (const name of unknown) {
      problems.push(`spec.mcp.virtualServers[${at}].targets: targets has no entry ${name}`)
    }
  }
  return problems
}
