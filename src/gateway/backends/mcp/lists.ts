/** Filters and renames the items of lists, and joins the lists and cursors of several targets. */
import { type CacheHints, hintsOf, hintsText } from './cache-hints.ts'
import { type Edit, type JsonNode, member, rawOf, splice, spliceIn, textOf } from './json/node.ts'
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

/** Is the item with this name shown to the client? */
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
