/** Requests of MCP clients: what each is about, and to whom it goes where there are several targets. */
import type { McpItemType } from '../../exchange/mcp.ts'

/** A list: every target that has some gives its part. */
export interface ListMethod {
  readonly kind: 'list'
  /** The method itself, such as `tools/list`. */
  readonly name: string
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

type McpMethod =
  | ListMethod
  | ItemMethod
  | { readonly kind: 'initialize' }
  | { readonly kind: 'ping' }
  /** Names a prompt or a template. */
  | { readonly kind: 'complete' }
  | { readonly kind: 'level' }
  /** About a task of one server: only a single target gets it. */
  | { readonly kind: 'task' }
  /** Unknown to the gateway: only a single target without authorization rules gets it. */
  | { readonly kind: 'other' }

type Capability = 'tools' | 'prompts' | 'resources' | 'logging' | 'completions'

export const listMethods: readonly ListMethod[] = [
  {
    kind: 'list',
    name: 'tools/list',
    type: 'tool',
    member: 'tools',
    key: 'name',
    capability: 'tools',
  },
  {
    kind: 'list',
    name: 'prompts/list',
    type: 'prompt',
    member: 'prompts',
    key: 'name',
    capability: 'prompts',
  },
  {
    kind: 'list',
    name: 'resources/list',
    type: 'resource',
    member: 'resources',
    key: 'uri',
    capability: 'resources',
  },
  {
    kind: 'list',
    name: 'resources/templates/list',
    type: 'resource',
    member: 'resourceTemplates',
    key: 'uriTemplate',
    capability: 'resources',
  },
]

const item = (type: McpItemType, key: ItemMethod['key']): ItemMethod => ({
  kind: 'item',
  type,
  key,
})

const methods = new Map<string, McpMethod>([
  ['initialize', { kind: 'initialize' }],
  ['ping', { kind: 'ping' }],
  ...listMethods.map((method) => [method.name, method] as const),
  ['tools/call', item('tool', 'name')],
  ['prompts/get', item('prompt', 'name')],
  ['resources/read', item('resource', 'uri')],
  ['resources/subscribe', item('resource', 'uri')],
  ['resources/unsubscribe', item('resource', 'uri')],
  ['completion/complete', { kind: 'complete' }],
  ['logging/setLevel', { kind: 'level' }],
  ['tasks/get', { kind: 'task' }],
  ['tasks/result', { kind: 'task' }],
  ['tasks/list', { kind: 'task' }],
  ['tasks/cancel', { kind: 'task' }],
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
  'notifications/tasks/status',
  'notifications/roots/list_changed',
])

/** A name for metrics: what clients make up is not one. */
export function knownMethod(name: string): string {
  return methods.has(name) || notifications.has(name) ? name : 'other'
}
