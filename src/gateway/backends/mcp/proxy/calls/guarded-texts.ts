/** The texts of messages that guards read and change. */
import { type Edit, type JsonNode, member, splice, textOf } from '../../json/node.ts'
import { type JsonText, textsIn } from '../../json/texts.ts'
import type { McpMessage, McpRequest, McpResponse } from '../../message.ts'

/** Texts that a model reads as one. Each of them is at its place in the message. */
export type TextGroup = readonly JsonText[]

/** Members of results that are not text for people or models. */
const notText: ReadonlySet<string> = new Set([
  '_meta',
  'resultType',
  'nextCursor',
  'requestState',
  'ttlMs',
  'cacheScope',
  'isError',
])
/** Members of content blocks that are not text. */
const notInBlock: ReadonlySet<string> = new Set(['type', 'mimeType', 'role', 'blob', 'size'])
const notInMedia: ReadonlySet<string> = new Set([...notInBlock, 'data'])
/** Members of requests and notifications of servers that the gateway or the client needs as they are. */
const notInParams: ReadonlySet<string> = new Set([
  ...notInMedia,
  'progressToken',
  'requestId',
  'level',
  'elicitationId',
  'taskId',
  'maxTokens',
  'progress',
  'total',
])

const logMethod = 'notifications/message'
/** In a log message, `data` is the text. In other messages it is the content of an image. */
const notInLog: ReadonlySet<string> = new Set([...notInParams].filter((name) => name !== 'data'))
/** Members of an item in a list by which clients use it, or that models do not read. */
const notInItem: ReadonlySet<string> = new Set([
  ...['name', 'uri', 'uriTemplate', 'mimeType', 'size', 'icons', '_meta', 'execution'],
])

/** The place of the texts of these methods; undefined for calls of tools. */
export const placeOfMethod = (method: string): 'Resources' | 'Prompts' | undefined =>
  method.startsWith('resources/')
    ? 'Resources'
    : method.startsWith('prompts/')
      ? 'Prompts'
      : undefined

const single = (one: JsonText): TextGroup => [one]

/**
 * Returns the texts of the arguments of a request, with their keys. `completion/complete` has the value of one argument,
 * whose name the server needs unchanged, and the arguments that the user chose before.
 */
export function argumentTexts(text: string, params: JsonNode | undefined): readonly TextGroup[] {
  const nodes = [
    member(params, 'arguments'),
    member(member(params, 'argument'), 'value'),
    member(member(params, 'context'), 'arguments'),
  ]
  return nodes.flatMap((node) => (node === undefined ? [] : textsIn(text, node).map(single)))
}

/** The texts of a result or an error. */
export function responseTexts({ text, result, error }: McpResponse): readonly TextGroup[] {
  if (error !== undefined) {
    const ofError = ['message', 'data'].flatMap((name) => member(error, name) ?? [])
    return ofError.flatMap((node) => textsIn(text, node)).map(single)
  }
  const groups: TextGroup[] = []
  for (const [at, key] of (result?.keys ?? []).entries()) {
    const node = result?.values?.[at]
    if (node === undefined || notText.has(key)) continue
    if (key === 'content' || key === 'contents' || key === 'messages') {
      groups.push(...blockTexts(text, node))
    } else groups.push(...textsIn(text, node).map(single))
  }
  return groups
}

/** Models read the texts of all blocks as one, so that what is split among them is found, too. */
function blockTexts(text: string, list: JsonNode): readonly TextGroup[] {
  const joined: JsonText[] = []
  const others: TextGroup[] = []
  for (const node of list.values ?? []) {
    const block = member(node, 'content') ?? node
    const type = textOf(text, member(block, 'type'))
    const isMedia = type === 'image' || type === 'audio'
    const shown = member(block, 'text')
    for (const one of textsIn(text, node, isMedia ? notInMedia : notInBlock)) {
      if (one.start === shown?.start) joined.push(one)
      else others.push([one])
    }
  }
  return joined.length === 0 ? others : [joined, ...others]
}

/** The texts of an item in a list, with the keys of its schemas. */
export function definitionTexts(text: string, item: JsonNode): readonly TextGroup[] {
  return (item.keys ?? []).flatMap((key, at) => {
    const value = item.values?.[at]
    return value === undefined || notInItem.has(key) ? [] : textsIn(text, value).map(single)
  })
}

/** The texts of a request or notification of a server. */
export function serverTexts({
  text,
  method,
  params,
}: Pick<McpRequest, 'text' | 'method' | 'params'>): readonly TextGroup[] {
  if (params === undefined) return []
  return textsIn(text, params, method === logMethod ? notInLog : notInParams).map(single)
}

/** Replaces texts. `changed` has the new values in the order of the groups. */
export function withTexts(
  { text }: Pick<McpMessage, 'text'>,
  groups: readonly TextGroup[],
  changed: readonly string[],
): string {
  const edits: Edit[] = []
  for (const [at, one] of groups.flat().entries()) {
    const value = changed[at]
    if (value === undefined || value === one.value) continue
    edits.push({ start: one.start, end: one.end, text: JSON.stringify(value) })
  }
  return splice(
    text,
    edits.sort((a, b) => a.start - b.start),
  )
}
