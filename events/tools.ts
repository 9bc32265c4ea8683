import { defineEvent } from './envelope.ts'

export interface ObservedItemData {
  readonly name: string
  readonly digest: string
  readonly definition?: string
}

export interface ToolsObservedData {
  readonly backend: string
  readonly target: string
  readonly list: string
  readonly proxy: string
  readonly isApproved: boolean
  readonly items: readonly ObservedItemData[]
  readonly removed: readonly string[]
}

export const toolsObserved = defineEvent<ToolsObservedData>()({
  name: 'ToolsObserved',
  type: 'dev.sluice.tools.observed.v1',
  version: 1,
  about: 'A proxy has seen that an MCP server lists other tools, prompts or resources than before.',
  fields: {
    backend: 'Namespace and name of the GatewayBackend, with a slash.',
    target: 'Name of the target of the backend.',
    list: '`tools`, `prompts`, `resources` or `resourceTemplates` of an MCP server, or `agents` for the card of an A2A agent.',
    proxy: 'Name of the proxy.',
    isApproved:
      'Whether the versions are approved without an operator: the list is seen for the first time, or pinning was Off.',
    items:
      'New and changed items: name (or URI), digest of the definition, and the definition as canonical JSON without `_meta` and `icons`, unless it is very long.',
    removed: 'Names of items that the server no longer lists.',
  },
})

export interface ToolsApprovedData {
  readonly backend: string
  readonly target: string
  readonly list: string
  readonly items: Readonly<Record<string, string | null>>
  readonly reason: string
  readonly author: string
}

export const toolsApproved = defineEvent<ToolsApprovedData>()({
  name: 'ToolsApproved',
  type: 'dev.sluice.tools.approved.v1',
  version: 1,
  about:
    'An operator has approved versions of tools, prompts or resources (`sluice tools approve`).',
  fields: {
    backend: 'Namespace and name of the GatewayBackend, with a slash.',
    target: 'Name of the target of the backend.',
    list: '`tools`, `prompts`, `resources` or `resourceTemplates` of an MCP server, or `agents` for the card of an A2A agent.',
    items: 'Digest of the approved version of each item; null if no version is approved any more.',
    reason: 'Why, in the words of the operator.',
    author: 'Who has approved them.',
  },
})
