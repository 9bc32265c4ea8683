/** Filters of `subscriptions/listen`: which changes a client wants to be notified of. */
import { type JsonNode, member, membersOf, replace, textOf } from '../json/node.ts'
import { notificationText, resultText } from '../json-rpc.ts'
import { type McpNotification, type McpRequest, paramsWithMeta } from '../message.ts'
import { metaKeys } from '../meta-keys.ts'
import { hasFlag } from './initialize.ts'

/** Lists whose changes a client can subscribe to, and the notification of each. */
const lists = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
} as const
type ListKey = keyof typeof lists
const listKeys = Object.keys(lists) as ListKey[]

const updated = 'notifications/resources/updated'
const acknowledged = 'notifications/subscriptions/acknowledged'

/** Maximum number of resources in one subscription. */
const maxUris = 1_000

export interface ChangeFilter {
  readonly lists: readonly ListKey[]
  readonly uris: readonly string[]
}

export const isEmpty = ({ lists, uris }: ChangeFilter): boolean => lists.length + uris.length === 0

/** Reads the filter of a request or of an acknowledgement, or returns what is wrong with it. */
export function readFilter({
  text,
  params,
}: Pick<McpRequest, 'text' | 'params'>): ChangeFilter | string {
  const node = member(params, 'notifications')
  if (node?.type !== 'object') return 'params.notifications must be an object'
  const found: ListKey[] = []
  for (const key of listKeys) {
    const flag = member(node, key)
    if (flag !== undefined && flag.type !== 'boolean') {
      return `params.notifications.${key} must be true or false`
    }
    if (flag !== undefined && text.startsWith('true', flag.start)) found.push(key)
  }
  const uris = urisIn(text, member(node, 'resourceSubscriptions'))
  if (uris === undefined) return 'params.notifications.resourceSubscriptions must be a list of URIs'
  if (uris.length > maxUris) return `params.notifications has more than ${maxUris} resources`
  return { lists: found, uris }
}

function urisIn(text: string, node: JsonNode | undefined): string[] | undefined {
  if (node === undefined) return []
  const uris = node.values?.flatMap((one) => textOf(text, one) ?? [])
  return node.type === 'array' && uris?.length === node.values?.length ? uris : undefined
}

const filterJson = ({ lists, uris }: ChangeFilter): string =>
  JSON.stringify({
    ...Object.fromEntries(lists.map((key) => [key, true])),
    ...(uris.length > 0 && { resourceSubscriptions: uris }),
  })

/** Returns the filter of a legacy session, as JSON; undefined if the server reports nothing of it. */
export function sessionFilter(
  capabilities: Readonly<Record<string, unknown>>,
  uris: readonly string[],
): string | undefined {
  const filter = honouredBy(capabilities, { lists: listKeys, uris })
  return isEmpty(filter) ? undefined : filterJson(filter)
}

/** Returns the part of the filter that a legacy server can honour. */
export function honouredBy(
  capabilities: Readonly<Record<string, unknown>>,
  { lists, uris }: ChangeFilter,
): ChangeFilter {
  return {
    lists: lists.filter((key) =>
      hasFlag(capabilities, key.replace('ListChanged', ''), 'listChanged'),
    ),
    uris: hasFlag(capabilities, 'resources', 'subscribe') ? uris : [],
  }
}

/** Returns the notification with the id of the subscription. `id` is JSON. */
export function withSubscriptionId(message: McpNotification, id: string): string {
  const { text, params, method } = message
  const meta = membersOf(text, member(params, '_meta'), [metaKeys.subscription])
  const tags = [`"${metaKeys.subscription}":${id}`, ...meta]
  return notificationText(method, paramsWithMeta(message, tags))
}

/** Returns the request with another filter. */
export function withFilter({ text, params }: McpRequest, filter: ChangeFilter): string {
  const node = member(params, 'notifications')
  return node === undefined ? text : replace(text, node, filterJson(filter))
}

const tag = (id: string): string => `"_meta":{"${metaKeys.subscription}":${id}}`

/** Returns the first message of a subscription. `id` is the id of the request, as JSON. */
export function acknowledgement(id: string, honoured: ChangeFilter): string {
  return notificationText(acknowledged, `{${tag(id)},"notifications":${filterJson(honoured)}}`)
}

export const isAcknowledgement = ({ method }: McpNotification): boolean => method === acknowledged

/** Returns the response that ends a subscription in order. */
export function subscriptionEnd(id: string): string {
  return resultText(id, `{"resultType":"complete",${tag(id)}}`)
}

/** The notifications that the lists of a session have changed. */
export const listsChanged = Object.values(lists).map((method) => notificationText(method))

/** Returns the notifications that all lists of the filter have changed. */
export function allListsChanged(id: string, filter: ChangeFilter): string[] {
  return filter.lists.map((key) => notificationText(lists[key], `{${tag(id)}}`))
}

/** Whether the client has asked for this notification. */
export function wants(filter: ChangeFilter, method: string): boolean {
  if (method === updated) return filter.uris.length > 0
  return filter.lists.some((key) => lists[key] === method)
}

/** Joins what several targets honour. */
export function joinFilters(asked: ChangeFilter, honoured: readonly ChangeFilter[]): ChangeFilter {
  const uris = new Set(honoured.flatMap((one) => one.uris))
  return {
    lists: asked.lists.filter((key) => honoured.some((one) => one.lists.includes(key))),
    uris: asked.uris.filter((uri) => uris.has(uri)),
  }
}
