/** Filters and renames the items of lists, and joins the lists and cursors of several targets. */
import type { McpToolOverride } from '../../../ground/model/mcp-targets.ts'
import {
  type Edit,
  type JsonNode,
  jsonValue,
  member,
  membersOf,
  rawOf,
  replace,
  splice,
  spliceIn,
  textOf,
} from './json/node.ts'
import { type McpResponse, readResponse } from './message.ts'
import type { ListMethod, ProtocolEra } from './methods.ts'
import { readPairs, writePairs } from './naming.ts'
import { UriEdits } from './resource-uris.ts'

/** One target's part of a list. */
export interface ListPart {
  readonly target: string
  /** JSON of the items, as clients see them. */
  readonly items: readonly string[]
  /** The target's next cursor; undefined at the end of its list. */
  readonly cursor: string | undefined
  /** Undefined for a target without the list, which does not restrict caching. */
  readonly hints?: CacheHints | undefined
}

/** Whether the item with this name at the server is shown to the client. */
export type Keeps = (name: string) => boolean

/** How an item is presented to the client. */
interface PresentedItem {
  /** Name or URI for the client. */
  readonly name: string
  readonly override: McpToolOverride | undefined
}

/** Returns how the item with this name at the server is presented; undefined if it is hidden. */
export type Present = (name: string) => PresentedItem | undefined

/** Reads the items of one of several targets from a response. */
export function partOf(
  target: string,
  method: ListMethod,
  { text, result }: McpResponse,
  present: Present,
): ListPart {
  const items: string[] = []
  for (const node of member(result, method.member)?.values ?? []) {
    const name = nameOf(text, node, method)
    const presented = name === undefined ? undefined : present(name)
    if (presented === undefined) continue
    items.push(itemForClient(method, target, text, node, presented))
  }
  const cursor = textOf(text, member(result, 'nextCursor'))
  return { target, items, cursor, hints: hintsOf(text, result) }
}

/** Presents the items in the response of the only target; everything else stays unchanged. */
export function presentItems(
  method: ListMethod,
  { text, result }: McpResponse,
  present: Present,
): string {
  const list = member(result, method.member)
  if (list === undefined) return text
  const edits: Edit[] = []
  const scope = member(result, 'cacheScope')
  // Other clients may see other items.
  if (scope !== undefined) edits.push({ ...scope, text: '"private"' })
  let isChanged = false
  const items = (list.values ?? []).flatMap((node) => {
    const name = nameOf(text, node, method)
    const presented = name === undefined ? undefined : present(name)
    isChanged ||= presented?.name !== name || presented?.override !== undefined
    const target = undefined
    return presented === undefined ? [] : [itemForClient(method, target, text, node, presented)]
  })
  if (isChanged) edits.push({ ...list, text: `[${items.join(',')}]` })
  return splice(
    text,
    edits.sort((a, b) => a.start - b.start),
  )
}

const nameOf = (text: string, node: JsonNode, { key }: ListMethod): string | undefined =>
  textOf(text, member(node, key))

/** Returns the JSON of an item. `target` is undefined if there is only one, whose URIs stay unchanged. */
export function itemForClient(
  { key }: ListMethod,
  target: string | undefined,
  text: string,
  node: JsonNode,
  { name, override }: PresentedItem,
): string {
  const uris = target === undefined ? undefined : new UriEdits(target, text)
  uris?.meta(node)
  const edits = uris?.all ?? []
  if (override !== undefined) return overriddenTool(text, node, name, override, edits)
  const value = member(node, key)
  if (value === undefined) return spliceIn(text, node, edits)
  const named = { start: value.start, end: value.end, text: JSON.stringify(name) }
  return spliceIn(
    text,
    node,
    [named, ...edits].sort((a, b) => a.start - b.start),
  )
}

function overriddenTool(
  text: string,
  node: JsonNode,
  name: string,
  { title, description, annotations }: McpToolOverride,
  edits: readonly Edit[],
): string {
  const own = [`"name":${JSON.stringify(name)}`]
  const set = (key: string, value: string | undefined) => {
    if (value !== undefined) own.push(`${JSON.stringify(key)}:${value}`)
  }
  set('title', title && JSON.stringify(title))
  set('description', description && JSON.stringify(description))
  set('annotations', annotations && mergedHints(text, member(node, 'annotations'), annotations))
  const replaced = ['name']
  if (title !== undefined) replaced.push('title')
  if (description !== undefined) replaced.push('description')
  if (annotations !== undefined) replaced.push('annotations')
  const kept = (node.keys ?? []).flatMap((key, at) => {
    const value = node.values?.[at]
    if (value === undefined || replaced.includes(key)) return []
    const inner = edits.filter(({ start, end }) => start >= value.start && end <= value.end)
    return [`${JSON.stringify(key)}:${spliceIn(text, value, inner)}`]
  })
  return `{${[...own, ...kept].join(',')}}`
}

/** `own` is the JSON of an object, whose members replace those of the server. */
function mergedHints(text: string, node: JsonNode | undefined, own: string): string {
  const replaced = Object.keys(JSON.parse(own) as object)
  const kept = membersOf(text, node, replaced)
  return kept.length === 0 ? own : `{${kept.join(',')},${own.slice(1)}`
}

/** Member of a result's `_meta` that lists the targets that failed. */
export const unavailableKey = 'sluice.dev/unavailable'

/** Joins the parts of all targets, in order. `missing` names the targets that failed. */
export function mergedResult(
  { member: name }: ListMethod,
  parts: readonly ListPart[],
  missing: readonly string[],
  era: ProtocolEra,
): string {
  const items = parts.flatMap((part) => part.items).join(',')
  const cursor = writeCursor(parts)
  const next = cursor === undefined ? '' : `,"nextCursor":${JSON.stringify(cursor)}`
  const meta = missing.length === 0 ? '' : `,"_meta":${unavailableMeta(missing)}`
  const hints = parts.flatMap((part) => part.hints ?? [])
  const isPartial = missing.length > 0
  const modern = era === 'modern' ? `,"resultType":"complete",${hintsText(hints, isPartial)}` : ''
  return `{"${name}":[${items}]${next}${modern}${meta}}`
}

export function unavailableMeta(missing: readonly string[]): string {
  return JSON.stringify({ [unavailableKey]: missing })
}

/** Joins the cursors of all targets that have more items. Returns undefined if none has. */
function writeCursor(parts: readonly ListPart[]): string | undefined {
  const cursors = parts.flatMap(({ target, cursor }) =>
    cursor === undefined ? [] : [[target, cursor] as const],
  )
  return cursors.length === 0 ? undefined : writePairs(cursors)
}

/** Returns the cursors by target; undefined if the gateway did not write the text. */
export function readCursor(text: string): ReadonlyMap<string, string> | undefined {
  const cursors = readPairs(text)
  return cursors?.size === 0 ? undefined : cursors
}

/** Cache hints of results in the modern era (2026-07-28, caching). */
export interface CacheHints {
  readonly ttlMs: number
  /** Whether clients with different credentials may share the result. */
  readonly isPublic: boolean
}

/** Returns the hints of a result. A result without hints must not be cached or shared. */
export function hintsOf(text: string, result: JsonNode | undefined): CacheHints {
  const node = member(result, 'ttlMs')
  const ttlMs = node?.type === 'number' ? (jsonValue(text, node) as number) : 0
  const isPublic = textOf(text, member(result, 'cacheScope')) === 'public'
  return { ttlMs: ttlMs > 0 ? Math.floor(ttlMs) : 0, isPublic }
}

/** Returns a response that clients with other credentials must not share: they may get another one. */
export function unshared(response: McpResponse): McpResponse {
  const { text, result } = response
  const scope = member(result, 'cacheScope')
  if (scope === undefined || rawOf(text, scope) === '"private"') return response
  return readResponse(replace(text, scope, '"private"')) ?? response
}

/**
 * Returns the members with the hints of a joined result: the shortest time, and public only if every part is.
 * A partial result must not be cached, because the other parts may be back at any time.
 */
export function hintsText(parts: readonly CacheHints[], isPartial: boolean): string {
  const ttlMs = isPartial || parts.length === 0 ? 0 : Math.min(...parts.map((part) => part.ttlMs))
  const isPublic = parts.length > 0 && parts.every((part) => part.isPublic)
  return `"ttlMs":${ttlMs},"cacheScope":"${isPublic ? 'public' : 'private'}"`
}
