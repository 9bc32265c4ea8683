/** Where requests and responses in the responses format have ids of what the provider stores. */
import {
  field,
  isObject,
  type JsonObject,
  listAt,
  mapField,
  stringAt,
  withFields,
} from '../../json/json.ts'
import { needNames } from '../../json/names.ts'
import { mapMembers, openFiles } from '../../stored/members.ts'
import type { IdOpener, SealId, StoredKind } from '../../stored/stored-ids.ts'

/** A request without these members can be passed on as it came. */
export const referringMembers = {
  any: ['previous_response_id', 'conversation', 'file_ids', 'vector_store_ids'],
  texts: ['id', 'file_id', 'approval_request_id', 'container', 'container_id'],
}

/** Names that servers must not find in another case, at the top of a request, in an item, and in a tool. */
const requestNames = new Set(
  'previous_response_id conversation input tools prompt items'.split(' '),
)
const itemNames = new Set(['id', 'type', 'role', 'approval_request_id', 'container_id'])
const toolNames = new Set(['container'])
const conversationNames = new Set(['id'])

/** Items that say nothing but their id: the provider loads what it has stored. */
function isReference(item: JsonObject): boolean {
  switch (stringAt(item, 'type')) {
    case 'item_reference':
      return true
    case 'image_generation_call':
      return stringAt(item, 'result') === undefined
    case undefined:
      return field(item, 'type') == null && field(item, 'role') == null
    default:
      return false
  }
}

/** Approvals name the item that asks for them, so that it keeps its id. */
const keepsId = (item: JsonObject): boolean => stringAt(item, 'type') === 'mcp_approval_request'

/**
 * Opens the ids of one item. An item with an id that does not open loses it, because the provider could load what
 * another client has stored under it.
 */
function openItem(value: unknown, ids: IdOpener, path: string, inLine: ReadonlySet<unknown>) {
  if (!isObject(value)) return value
  needNames(value, itemNames)
  const item = openFiles(value, ids, path) as JsonObject
  const approval = stringAt(item, 'approval_request_id')
  const container = stringAt(item, 'container_id')
  const opened = withFields(item, {
    ...(approval !== undefined && {
      approval_request_id: inLine.has(approval)
        ? (ids.find('item', approval) ?? approval)
        : ids.need('item', approval, `${path}.approval_request_id`),
    }),
    ...(container !== undefined && {
      container_id: ids.find('container', container) ?? container,
    }),
  })
  const id = stringAt(opened, 'id')
  if (id === undefined) return opened
  if (isReference(opened)) return { ...opened, id: ids.need('item', id, `${path}.id`) }
  const found = ids.find('item', id)
  if (found !== undefined) return { ...opened, id: found }
  if (keepsId(opened)) return opened
  const { id: _unknown, ...rest } = opened
  return rest
}

/** Opens the ids of a list of items. */
export function openItems(body: JsonObject, name: string, ids: IdOpener): JsonObject {
  needNames(body, requestNames)
  const items = listAt(body, name)
  if (items.length === 0) return body
  const inLine = new Set(items.filter((item) => isObject(item) && keepsId(item)).map(idOf))
  const opened = items.map((item, at) => openItem(item, ids, `${name}[${at}]`, inLine))
  return opened.every((item, at) => item === items[at]) ? body : { ...body, [name]: opened }
}

const idOf = (item: unknown): unknown => field(item, 'id')

function openTool(tool: unknown, ids: IdOpener, path: string): unknown {
  if (isObject(tool)) needNames(tool, toolNames)
  const opened = openFiles(tool, ids, path)
  const container = stringAt(opened, 'container')
  if (!isObject(opened) || container === undefined) return opened
  return { ...opened, container: ids.need('container', container, `${path}.container`) }
}

/** Opens the ids in a request. Returns the same object if there are none. @throws StoredNotFoundError */
export function openRequest(body: JsonObject, ids: IdOpener): JsonObject {
  const previous = stringAt(body, 'previous_response_id')
  const opened = mapField(openItems(body, 'input', ids), 'conversation', (conversation) =>
    openConversation(conversation, ids),
  )
  const tools = mapField(opened, 'tools', (tool) => openTool(tool, ids, 'tools'))
  const prompt = mapField(tools, 'prompt', (one) => openFiles(one, ids, 'prompt'))
  return previous === undefined
    ? prompt
    : {
        ...prompt,
        previous_response_id: ids.need('response', previous, 'previous_response_id'),
      }
}

function openConversation(value: unknown, ids: IdOpener): unknown {
  if (typeof value === 'string') return ids.need('conversation', value, 'conversation')
  if (!isObject(value)) return value
  needNames(value, conversationNames)
  const id = stringAt(value, 'id')
  if (id === undefined) return value
  return { ...value, id: ids.need('conversation', id, 'conversation.id') }
}

/** Seals the text of a member; null and other values stay. */
function sealMember(holder: JsonObject, name: string, kind: StoredKind, seal: SealId): JsonObject {
  const id = stringAt(holder, name)
  return id === undefined || id === '' ? holder : { ...holder, [name]: seal(kind, id) }
}

/** Seals the ids of containers in a value, at any depth. */
const sealContainers = (value: unknown, seal: SealId): unknown =>
  mapMembers(value, '', (name, member) =>
    name === 'container_id' && typeof member === 'string' ? seal('container', member) : undefined,
  )

/** Seals the ids of one item of a response, a conversation or a list. */
export function sealItem(value: unknown, seal: SealId): unknown {
  const item = sealContainers(value, seal)
  if (!isObject(item)) return item
  const named = sealMember(item, 'id', 'item', seal)
  return sealMember(named, 'approval_request_id', 'item', seal)
}

const sealTool = (tool: unknown, seal: SealId): unknown =>
  isObject(tool)
    ? mapField(sealMember(tool, 'container', 'container', seal), 'environment', (one) =>
        sealContainers(one, seal),
      )
    : tool

/** Seals the ids in a response. */
export function sealResponse(response: JsonObject, seal: SealId): JsonObject {
  const named = sealMember(response, 'id', 'response', seal)
  const previous = sealMember(named, 'previous_response_id', 'response', seal)
  const conversation = mapField(previous, 'conversation', (value) =>
    typeof value === 'string'
      ? seal('conversation', value)
      : isObject(value)
        ? sealMember(value, 'id', 'conversation', seal)
        : value,
  )
  const tools = mapField(conversation, 'tools', (tool) => sealTool(tool, seal))
  const output = mapField(tools, 'output', (item) => sealItem(item, seal))
  return mapField(output, 'input', (item) => sealItem(item, seal))
}

/** Seals the ids in an event of a stream, of whatever type: new types have them in the same members. */
export function sealEvent(event: JsonObject, seal: SealId): JsonObject {
  const named = sealMember(event, 'item_id', 'item', seal)
  const of = sealMember(named, 'response_id', 'response', seal)
  const whole = mapField(of, 'response', (value) =>
    isObject(value) ? sealResponse(value, seal) : value,
  )
  const item = mapField(whole, 'item', (value) => sealItem(value, seal))
  const part = mapField(item, 'part', (value) => sealContainers(value, seal))
  return mapField(part, 'annotation', (value) => sealContainers(value, seal))
}
