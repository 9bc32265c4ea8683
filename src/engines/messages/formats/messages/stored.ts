/** Where messages have ids of what the provider stores: files, and containers in which code runs. */
import type { StringCheck } from '../../../json/scanner.ts'
import { isObject, type JsonObject, listAt, mapField, stringAt } from '../../json/json.ts'
import { needNames } from '../../json/names.ts'
import { mapMembers, needPlainName } from '../../stored/members.ts'
import type { IdOpener, SealId, StoredKind } from '../../stored/stored-ids.ts'

/** Tools that the vendor runs, or knows, have a version. Some of them make files. */
const versioned = /_\d{8}$/

const zero = 0x30
const nine = 0x39
const underscore = 0x5f

/** Whether a text is not the type of such a tool. */
export const isPlainType: StringCheck = (bytes, start, end) => {
  if (end - start < 9 || bytes[end - 9] !== underscore) return true
  for (let at = end - 8; at < end; at++) {
    const byte = bytes[at] ?? 0
    if (byte < zero || byte > nine) return true
  }
  return false
}

export const mayMakeFiles = ({ container, tools }: JsonObject): boolean =>
  container != null ||
  (Array.isArray(tools) && tools.some((tool) => versioned.test(stringAt(tool, 'type') ?? '')))

/** Maps ids in a value, without those in arguments of tools. */
function mapIds(
  value: unknown,
  path: string,
  map: (kind: StoredKind, id: string, path: string) => string,
  check?: (name: string, member: unknown) => void,
): unknown {
  return mapMembers(value, path, (name, member, at) => {
    if (name === 'input') return member
    check?.(name, member)
    if (name === 'file_id') return typeof member === 'string' ? map('file', member, at) : member
    const id = name === 'container' ? stringAt(member, 'id') : undefined
    if (id === undefined || !isObject(member)) return undefined
    return { ...member, id: map('container', id, `${at}.id`) }
  })
}

/** Results of tools that the vendor runs load nothing but sources: they say what an earlier answer has made. */
const isEarlierResult = (block: unknown, path: string): boolean =>
  (stringAt(block, 'type') ?? '').endsWith('_tool_result') && !path.endsWith('source.file_id')

function openMessage(message: unknown, ids: IdOpener): unknown {
  if (!isObject(message)) return message
  needNames(message, messageNames)
  return mapField(message, 'content', (block) =>
    mapIds(
      block,
      'messages.content',
      (kind, id, path) =>
        isEarlierResult(block, path) ? (ids.find(kind, id) ?? id) : ids.need(kind, id, path),
      needPlainName,
    ),
  )
}

const requestNames = new Set(['messages', 'container'])
const messageNames = new Set(['content'])
const containerNames = new Set(['id'])

/** Opens the ids in a request. Returns the same object if there are none. @throws StoredNotFoundError */
export function openMessages(body: JsonObject, ids: IdOpener): JsonObject {
  needNames(body, requestNames)
  const { container } = body
  if (isObject(container)) needNames(container, containerNames)
  const messages = listAt(body, 'messages')
  const opened = messages.map((message) => openMessage(message, ids))
  const isSame = opened.every((message, at) => message === messages[at])
  const withFiles = isSame ? body : { ...body, messages: opened }
  if (typeof container === 'string') {
    return { ...withFiles, container: ids.need('container', container, 'container') }
  }
  const id = stringAt(container, 'id')
  if (id === undefined || !isObject(container)) return withFiles
  return {
    ...withFiles,
    container: { ...container, id: ids.need('container', id, 'container.id') },
  }
}

/** Seals the ids in a response, or in an event of a stream. */
export const sealMessages = (body: JsonObject, seal: SealId): JsonObject =>
  mapIds(body, '', seal) as JsonObject
