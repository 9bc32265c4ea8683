/** Nodes of a JSON text, and edits of their texts. */

export type JsonType = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

/** A value at [start, end) of the text. */
export interface JsonNode {
  readonly type: JsonType
  readonly start: number
  readonly end: number
  /** The keys of an object in order, without duplicates; undefined below the kept depth. */
  readonly keys?: readonly string[]
  /** The values of an object or array; undefined below the kept depth. */
  readonly values?: readonly JsonNode[]
}

/** A text to put at [start, end). */
export interface Edit extends Pick<JsonNode, 'start' | 'end'> {
  readonly text: string
}

/** Returns the member of an object; undefined if there is none, or if the node is not an object. */
export function member(node: JsonNode | undefined, key: string): JsonNode | undefined {
  const at = node?.keys?.indexOf(key) ?? -1
  return at < 0 ? undefined : node?.values?.[at]
}

/** Returns the value of a string; undefined if the node is not a string. */
export function textOf(source: string, node: JsonNode | undefined): string | undefined {
  if (node?.type !== 'string') return undefined
  const raw = source.slice(node.start + 1, node.end - 1)
  return raw.includes('\\') ? (JSON.parse(source.slice(node.start, node.end)) as string) : raw
}

/** The JSON text of a value. */
export function rawOf(source: string, { start, end }: JsonNode): string {
  return source.slice(start, end)
}

/** The parsed value. */
export function jsonValue(source: string, node: JsonNode): unknown {
  return JSON.parse(rawOf(source, node))
}

/** Replaces the text of one value. */
export function replace(source: string, { start, end }: JsonNode, text: string): string {
  return source.slice(0, start) + text + source.slice(end)
}

/** Replaces the texts of several values. Edits must be in order and must not overlap. */
export function splice(source: string, edits: readonly Edit[]): string {
  return edits.length === 0 ? source : spliceIn(source, { start: 0, end: source.length }, edits)
}

/** Returns the JSON text of a value with the texts of values in it replaced, as `splice` does. */
export function spliceIn(
  source: string,
  { start: from, end: to }: Pick<JsonNode, 'start' | 'end'>,
  edits: readonly Edit[],
): string {
  let out = ''
  let at = from
  for (const { start, end, text } of edits) {
    out += source.slice(at, start) + text
    at = end
  }
  return out + source.slice(at, to)
}
