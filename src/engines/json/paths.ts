/**
 * Paths that name values of JSON documents: a part of JSONPath (RFC 9535). A path is `$`, which may be omitted, and
 * segments:
 *
 *   .name  ['name']  ["name"]   a member of an object
 *   [0]                         an item of an array
 *   .*  [*]                     all members or items
 *   ..name  ..*  ..['name']     the same at any depth
 *
 * Filters, slices, negative indexes, functions and lists of selectors are not supported.
 */

/** A step of a path. It selects all members and items if it has neither a name nor an index. */
export interface PathSegment {
  /** Name of the member, as `foldName` returns it. */
  readonly name?: string
  readonly index?: number
  /** Whether the step may begin at any depth below the previous one. */
  readonly isDeep: boolean
}

export type JsonPath = readonly PathSegment[]

/** Maximum number of segments of a path. */
const maxSegments = 16

/**
 * Returns a name in a form that is equal for names that differ only in case. Some JSON parsers, such as that of Go, treat
 * such names as the same member.
 */
export const foldName = (name: string): string => name.toUpperCase().toLowerCase()

const plainName = /[\p{L}_][\p{L}\p{N}_]*/uy
const quotedName = /\[\s*(?:'((?:[^'\\]|\\.)*)'|("(?:[^"\\]|\\.)*"))\s*\]/y
const position = /\[\s*(0|[1-9][0-9]{0,8})\s*\]/y
const every = /\[\s*\*\s*\]/y

/** What a bracket may contain in JSONPath but not here. */
const unsupported: readonly (readonly [RegExp, string])[] = [
  [/\[\s*\?/y, 'filters'],
  [/\[\s*-[0-9]/y, 'negative indexes'],
  [/\[[^\]'"]*:/y, 'slices'],
  [/\[[^\]]*,/y, 'lists of selectors'],
]

/** Returns the segments of a path, or what is wrong with it. */
export function parsePath(text: string): JsonPath | string {
  const segments: PathSegment[] = []
  let at = text.startsWith('$') ? 1 : 0
  while (at < text.length) {
    const found = readSegment(text, at)
    if (typeof found === 'string') return `${found}, at character ${at + 1}`
    segments.push(found.segment)
    at = found.end
    if (segments.length > maxSegments) return `a path has at most ${maxSegments} segments`
  }
  return text === '' ? 'a path must not be empty' : segments
}

type Found = { readonly segment: PathSegment; readonly end: number } | string

function readSegment(text: string, start: number): Found {
  const isDeep = text.startsWith('..', start)
  const dots = isDeep ? 2 : text[start] === '.' ? 1 : 0
  const at = start + dots
  if (text[at] === '[' && dots !== 1) return readBracket(text, at, isDeep)
  if (text[at] === '*' && dots > 0) return { segment: { isDeep }, end: at + 1 }
  // Only the first name of a path needs no dot.
  const name = dots > 0 || start === 0 ? matchAt(plainName, text, at)?.[0] : undefined
  if (name !== undefined)
    return { segment: { name: foldName(name), isDeep }, end: at + name.length }
  return "expected .name, ['name'], [index], .* or [*]"
}

function readBracket(text: string, at: number, isDeep: boolean): Found {
  const quoted = matchAt(quotedName, text, at)
  if (quoted !== undefined) {
    const name = nameIn(quoted[1], quoted[2])
    if (name === undefined) return 'a quoted name has a bad escape'
    return { segment: { name: foldName(name), isDeep }, end: at + quoted[0].length }
  }
  const indexed = matchAt(position, text, at)
  if (indexed !== undefined) {
    return { segment: { index: Number(indexed[1]), isDeep }, end: at + indexed[0].length }
  }
  const all = matchAt(every, text, at)
  if (all !== undefined) return { segment: { isDeep }, end: at + all[0].length }
  const known = unsupported.find(([pattern]) => matchAt(pattern, text, at) !== undefined)
  return known === undefined
    ? 'expected a quoted name, an index or *'
    : `${known[1]} are not supported`
}

function nameIn(single: string | undefined, double: string | undefined): string | undefined {
  const literal =
    double ?? `"${single?.replaceAll(/\\'|"/g, (one) => (one === '"' ? '\\"' : "'")) ?? ''}"`
  try {
    return JSON.parse(literal) as string
  } catch {
    return undefined
  }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}
