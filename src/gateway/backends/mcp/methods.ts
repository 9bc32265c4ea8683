/** Methods of MCP clients, and how they are served if there are several targets. */
import type { McpItemType } from '../../../ground/exchange/mcp.ts'

/** Revisions up to 2025-11-25 are legacy: they have sessions. Later ones are modern (eras/versions.ts). */
export type ProtocolEra = 'legacy' | 'modern'

/** A method that lists items. Every target contributes its part. */
export interface ListMethod {
  readonly kind: 'list'
  /** The method, such as `tools/list`. */
  readonly name: string
  /** Member of the result that contains the list. */
  readonly member: 'tools' | 'prompts' | 'resources' | 'resourceTemplates'
  /** Member of an item that identifies it. */
  readonly key: 'name' | 'uri' | 'uriTemplate'
  readonly type: McpItemType
  /** Capability of servers that support the method. */
  readonly capability: string
}

/** A method that names one item. It is sent to the target that has the item. */
export interface ItemMethod {
  readonly kind: 'item'
  /** Member of params that names the item. */
  readonly key: 'name' | 'uri'
  readonly type: McpItemType
}

export type McpMethod =
  | ListMethod
  | ItemMethod
  | { readonly kind: 'initialize' }
  | { readonly kind: 'ping' }
  /** `completion/complete`, whose params name a prompt or a resource template. */
  | { readonly kind: 'complete' }
  | { readonly kind: 'level' }
  /** `server/discover` of the modern era. */
  | { readonly kind: 'discover' }
  /** `subscriptions/listen` of the modern era. */
  | { readonly kind: 'listen' }
  /** A method about a task of one server; passed only to a single target. */
  | { readonly kind: 'task' }
  /** A method unknown to the gateway; passed only to a single target without authorization rules. */
  | { readonly kind: 'other' }

const capabilities = { tool: 'tools', prompt: 'prompts', resource: 'resources' } as const

const list = (
  type: McpItemType,
  name: string,
  member: ListMethod['member'],
  key: ListMethod['key'],
): ListMethod => ({ kind: 'list', type, name, member, key, capability: capabilities[type] })

export const toolsMethod: ListMethod = list('tool', 'tools/list', 'tools', 'name')

export const listMethods: readonly ListMethod[] = [
  toolsMethod,
  list('prompt', 'prompts/list', 'prompts', 'name'),
  list('resource', 'resources/list', 'resources', 'uri'),
  list('resource', 'resources/templates/list', 'resourceTemplates', 'uriTemplate'),
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

/** What a reference of `completion/complete` names. */
export function completedItem(type: string | undefined): Omit<ItemMethod, 'kind'> | undefined {
  if (type === 'ref/prompt') return { key: 'name', type: 'prompt' }
  return type === 'ref/resource' ? { key: 'uri', type: 'resource' } : undefined
}

/** Methods that revision 2026-07-28 has removed. */
const removedMethods = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/result',
  'tasks/list',
])

const modernMethods = new Map<string, McpMethod>([
  ...[...methods].filter(([name]) => !removedMethods.has(name)),
  ['server/discover', { kind: 'discover' }],
  ['subscriptions/listen', { kind: 'listen' }],
  ['tasks/update', { kind: 'task' }],
])

const other: McpMethod = { kind: 'other' }

/**
 * Methods that only read, or set what they set already if they are repeated. A second `initialize` begins a
 * session that nothing uses.
 */
const repeatableMethods = new Set([
  'initialize',
  'ping',
  ...listMethods.map(({ name }) => name),
  'prompts/get',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'completion/complete',
  'logging/setLevel',
  'server/discover',
  'tasks/get',
  'tasks/result',
  'tasks/list',
])

/** Whether a server may receive a request with this method twice. A tool call may do something each time. */
export const isRepeatable = (method: string | undefined): boolean =>
  method !== undefined && repeatableMethods.has(method)

export function methodOf(name: string, era: ProtocolEra): McpMethod {
  return (era === 'modern' ? modernMethods : methods).get(name) ?? other
}

/** Whether the modern era has removed the method. */
export const isRemoved = (name: string): boolean =>
  removedMethods.has(name) || notifications.has(name)

/** Notifications that the protocol defines. Only their names may be label values. */
const notifications = new Set([
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/tasks/status',
  'notifications/roots/list_changed',
])

/** Returns the label value of a method: its name, or `other` for names that clients make up. */
export function knownMethod(name: string): string {
  const isKnown = methods.has(name) || modernMethods.has(name) || notifications.has(name)
  return isKnown ? name : 'other'
}
