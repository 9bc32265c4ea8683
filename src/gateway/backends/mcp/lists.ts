/** Filters and renames the items of lists, and joins the lists and cursors of several targets. */
import {
  type Edit,
  type JsonNode,
  jsonValue,
  member,
  rawOf,
  splice,
  spliceIn,
  textOf,
} from './json/node.ts'
import type { McpResponse } from './message.ts'
import type { ListMethod, ProtocolEra } from './methods.ts'
import { clientName, clientUri, readPairs, writePairs } from './naming.ts'
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

/** Whether the item with this name is shown to the client. */
export type Keeps = (name: string) => boolean

/** Reads the items of a response. If `isPrefixed`, the target is added to their names. */
export function partOf(
  target: string,
  method: ListMethod,
  { text, result }: McpResponse,
  isPrefixed: boolean,
  keeps: Keeps,
): ListPart {
  const items: string[] = []
  for (const node of member(result, method.member)?.values ?? []) {
    const name = nameOf(text, node, method)
    if (name === undefined || !keeps(name)) continue
    items.push(isPrefixed ? renamed(target, method, text, node, name) : rawOf(text, node))
  }
  const cursor = textOf(text, member(result, 'nextCursor'))
  return { target, items, cursor, hints: hintsOf(text, result) }
}

/** Removes hidden items from the response of the only target; everything else stays unchanged. */
export function withoutItems(method: ListMethod, { text, result }: McpResponse, keeps: Keeps) {
  const list = member(result, method.member)
  if (list === undefined) return text
  const edits: Edit[] = []
  const scope = member(result, 'cacheScope')
  // Other clients may see other items.
  if (scope !== undefined) edits.push({ ...scope, text: '"private"' })
  const all = list.values ?? []
  const kept = all.filter((node) => {
    const name = nameOf(text, node, method)
    return name !== undefined && keeps(name)
  })
  if (kept.length < all.length) {
    edits.push({ ...list, text: `[${kept.map((node) => rawOf(text, node)).join(',')}]` })
  }
  return splice(
    text,
    edits.sort((a, b) => a.start - b.start),
  )
}

const nameOf = (text: string, node: JsonNode, { key }: ListMethod): string | undefined =>
  textOf(text, member(node, key))

function renamed(
  target: string,
  { key }: ListMethod,
  text: string,
  node: JsonNode,
  name: string,
): string {
  const value = member(node, key)
  if (value === undefined) return rawOf(text, node)
  const called = key === 'name' ? clientName(target, name) : clientUri(target, name)
  const edits = new UriEdits(target, text)
  edits.add({ start: value.start, end: value.end, text: JSON.stringify(called) })
  edits.meta(node)
  return spliceIn(text, node, edits.all)
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

/**
 * Returns the members with the hints of a joined result: the shortest time, and public only if every part is.
 * A partial result must not be cached, because the other parts may be back at any time.
 */
export function hintsText(parts: readonly CacheHints[], isPartial: boolean): string {
  const ttlMs = isPartial || parts.length === 0 ? 0 : Math.min(...parts.map((part) => part.ttlMs))
  const isPublic = parts.length > 0 && parts.every((part) => part.isPublic)
  return `"ttlMs":${ttlMs},"cacheScope":"${isPublic ? 'public' : 'private'}"`
}
