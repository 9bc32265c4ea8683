/** Requests of MCP clients: what each is about, and to whom it goes where there are several targets. */
import type { McpItemType } from '../exchange/mcp.ts'

/** A list: every target that has some gives its part. */
export interface ListMethod {
  readonly kind: 'list'
  /** Of the result. */
  readonly member: 'tools' | 'prompts' | 'resources' | 'resourceTemplates'
  /** Of an item: what it is called by. */
  readonly key: 'name' | 'uri' | 'uriTemplate'
  readonly type: McpItemType
  readonly capability: Capability
}

/** Names one item, and goes to the target that has it. */
export interface ItemMethod {
  readonly kind: 'item'
  /** Of params. */
  readonly key: 'name' | 'uri'
  readonly type: McpItemType
}

export type McpMethod =
  | ListMethod
  | ItemMethod
  | { readonly kind: 'initialize' }
  | { readonly kind: 'ping' }
  /** Names a prompt or a template. */
  | { readonly kind: 'complete' }
  | { readonly kind: 'level' }
  /** Not known here: one target alone gets it as it is. */
  | { readonly kind: 'other' }

export type Capability = 'tools' | 'prompts' | 'resources' | 'logging' | 'completions'

const list = (
  type: McpItemType,
  member: ListMethod['member'],
  key: ListMethod['key'],
  capability: Capability,
): ListMethod => ({ kind: 'list', type, member, key, capability })

const item = (type: McpItemType, key: ItemMethod['key']): ItemMethod => ({
  kind: 'item',
  type,
  key,
})

const methods = new Map<string, McpMethod>([
  ['initialize', { kind: 'initialize' }],
  ['ping', { kind: 'ping' }],
  ['tools/list', list('tool', 'tools', 'name', 'tools')],
  ['prompts/list', list('prompt', 'prompts', 'name', 'prompts')],
  ['resources/list', list('resource', 'resources', 'uri', 'resources')],
  ['resources/templates/list', list('resource', 'resourceTemplates', 'uriTemplate', 'resources')],
  ['tools/call', item('tool', 'name')],
  ['prompts/get', item('prompt', 'name')],
  ['resources/read', item('resource', 'uri')],
  ['resources/subscribe', item('resource', 'uri')],
  ['resources/unsubscribe', item('resource', 'uri')],
  ['completion/complete', { kind: 'complete' }],
  ['logging/setLevel', { kind: 'level' }],
])

const other: McpMethod = { kind: 'other' }

export function methodOf(name: string): McpMethod {
  return methods.get(name) ?? other
}

/** Notifications of the protocol, beside methods: names that may stand in metrics. */
const notifications = new Set([
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
])

/** A name for metrics: what clients make up is not one. */
export function knownMethod(name: string): string {
  return methods.has(name) || notifications.has(name) ? name : 'other'
}
