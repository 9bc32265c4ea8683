/** Lists of one target or of many: what is left out, what is called otherwise, what comes next. */
import { type JsonNode, member, rawOf, splice, textOf } from './json/scan.ts'
import type { McpResponse } from './message.ts'
import type { ListMethod } from './methods.ts'
import { clientName, clientUri } from './naming.ts'

/** The part of one target. */
export interface ListPart {
  readonly target: string
  /** JSON of the items, as clients are to see them. */
  readonly items: readonly string[]
  /** Where the target goes on; undefined where it has told all. */
  readonly cursor: string | undefined
}

/** Is the item that the target calls so to be shown? */
export type Keeps = (name: string) => boolean

/** Items of an answer. `isPrefixed`: clients see several targets. */
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
  return { target, items, cursor: textOf(text, member(result, 'nextCursor')) }
}

/** The answer of the only target without what is not to be shown; all else stays as it is. */
export function withoutItems(method: ListMethod, { text, result }: McpResponse, keeps: Keeps) {
  const list = member(result, method.member)
  if (list === undefined) return text
  const all = list.values ?? []
  const kept = all.filter((node) => {
    const name = nameOf(text, node, method)
    return name !== undefined && keeps(name)
  })
  if (kept.length === all.length) return text
  const items = `[${kept.map((node) => rawOf(text, node)).join(',')}]`
  return splice(text, [{ start: list.start, end: list.end, text: items }])
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
  const before = text.slice(node.start, value.start)
  return `${before}${JSON.stringify(called)}${text.slice(value.end, node.end)}`
}

/** Where `_meta` of a result names targets whose part is missing. */
const unavailableKey = 'sluice.dev/unavailable'

/** The result with the parts of all targets, in their order. `missing`: those that failed. */
export function mergedResult(
  { member: name }: ListMethod,
  parts: readonly ListPart[],
  missing: readonly string[],
): string {
  const items = parts.flatMap((part) => part.items).join(',')
  const cursor = writeCursor(parts)
  const next = cursor === undefined ? '' : `,"nextCursor":${JSON.stringify(cursor)}`
  const meta = missing.length === 0 ? '' : `,"_meta":${unavailableMeta(missing)}`
  return `{"${name}":[${items}]${next}${meta}}`
}

export function unavailableMeta(missing: readonly string[]): string {
  return JSON.stringify({ [unavailableKey]: missing })
}

/** Cursors of all targets that have more, in one; undefined where none has. */
function writeCursor(parts: readonly ListPart[]): string | undefined {
  const left = parts.flatMap(({ target, cursor }) =>
    cursor === undefined ? [] : [[target, cursor] as const],
  )
  if (left.length === 0) return undefined
  return Buffer.from(JSON.stringify(left)).toString('base64url')
}

/** Cursors by target; undefined where the text is none that the gateway has written. */
export function readCursor(text: string): ReadonlyMap<string, string> | undefined {
  try {
    const pairs: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (!Array.isArray(pairs) || pairs.length === 0 || !pairs.every(isPair)) return undefined
    return new Map(pairs)
  } catch {
    return undefined
  }
}

/** Two texts, as cursors and positions of streams are written. */
export function isPair(value: unknown): value is readonly [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((one) => typeof one === 'string')
}
