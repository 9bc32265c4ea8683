import {
  type Document,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  type YAMLError,
} from 'yaml'
import { expandList, type FieldProblem, type PathStep } from '../api/validate.ts'
import { fail, failAll, type Outcome, succeed } from '../base/outcome.ts'
import { nodeProblem, startOf, tagProblems } from './manifest-nodes.ts'
import { decodeManifest, jsonTexts } from './manifest-text.ts'
import type { SourceProblem } from './source-problem.ts'

/** A place in a file; both begin at 1. */
interface Place {
  readonly line: number
  readonly column: number
}

/** One object of a file, as it was written. */
export interface ManifestObject {
  readonly value: unknown
  readonly place: Place
  /** What was written in a way that gives no value of a field; absent where there is nothing. */
  readonly problems?: readonly FieldProblem[]
  /**
   * Where a field such as `spec.rules[0].matches` stands: its name, or the item of a list. A field
   * that is not there gives the place of the closest one around it.
   */
  placeOf(path: string): Place
}

/** A document and where its text begins in the file. */
interface PlacedDocument {
  readonly document: Document.Parsed
  readonly start: number
}

type PlaceAt = (offset: number) => Place

/**
 * The objects of a YAML or JSON file, in order: each document is one, and lists of objects are
 * taken apart. A syntax error anywhere refuses the file as a whole, since it may have moved the
 * border between documents. Messages never repeat what was written: it may be secret.
 */
export function parseManifest(
  content: string | Uint8Array,
  file: string,
): Outcome<readonly ManifestObject[], SourceProblem> {
  const syntax = (place: Place, message: string): SourceProblem => {
    return { severity: 'error', reason: 'syntax', file, ...place, message }
  }
  const text = typeof content === 'string' ? content : decodeManifest(content)
  if (typeof text !== 'string') return fail(syntax({ line: text.line, column: 1 }, text.message))
  const { documents, placeAt } = parseDocuments(text)
  // What follows the first error of a document is mostly its echo.
  const errors = documents.flatMap(
    ({
      document: {
        errors: [error],
      },
      start,
    }) => (error === undefined ? [] : [syntax(placeAt(start + error.pos[0]), messageOf(error))]),
  )
  if (errors.length > 0) return failAll(errors)
  const objects: ManifestObject[] = []
  for (const { document, start } of documents) {
    const placed: PlaceAt = (offset) => placeAt(start + offset)
    const problem = nodeProblem(document)
    if (problem !== undefined) return fail(syntax(placed(problem.offset), problem.message))
    try {
      objects.push(...objectsOf(document, placed))
    } catch {
      // The only failure left is the guard against aliases that grow without bound.
      return fail(syntax(placed(startOf(document)), 'has too many aliases'))
    }
  }
  return succeed(objects)
}

/**
 * Merge keys (`<<`) are no part of YAML 1.2, but what kubectl takes. Values of other types than those
 * of JSON are left as they are written, and refused by name.
 */
const parseOptions = {
  prettyErrors: false,
  merge: true,
  resolveKnownTags: false,
  // `nodeProblem` looks for repeated keys.
  uniqueKeys: false,
} as const

function parseDocuments(text: string): { documents: PlacedDocument[]; placeAt: PlaceAt } {
  const lineCounter = new LineCounter()
  const whole = [...parseAllDocuments(text, { ...parseOptions, lineCounter })]
  const placeAt: PlaceAt = (offset) => {
    const { line, col } = lineCounter.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const isWhole = whole.every(({ errors }) => errors.length === 0)
  const pieces = isWhole || !/^\s*\{/.test(text) ? [] : jsonTexts(text)
  if (pieces.length < 2) {
    return { documents: whole.map((document) => ({ document, start: 0 })), placeAt }
  }
  const documents = pieces.flatMap((piece) =>
    [...parseAllDocuments(piece.text, parseOptions)].map((document) => ({
      document,
      start: piece.start,
    })),
  )
  return { documents, placeAt }
}

function messageOf({ message }: YAMLError): string {
  if (message.includes('call stack')) return 'not YAML: nested too deeply'
  // What follows ': "' is a piece of the file.
  return `not YAML: ${message.replace(/:? ?["'].*$/s, '').replace(/\s+/g, ' ')}`
}

function objectsOf(document: Document.Parsed, placeAt: PlaceAt): ManifestObject[] {
  const value: unknown = document.toJS({ maxAliasCount: 100 })
  if (value === null || value === undefined) return []
  return expandList(value).map(({ input, path }) =>
    objectAt(document, parsePath(path), input, placeAt),
  )
}

function objectAt(
  document: Document.Parsed,
  prefix: readonly PathStep[],
  value: unknown,
  placeAt: PlaceAt,
): ManifestObject {
  const start = startOf(document)
  const root = prefix.length === 0 ? document.contents : document.getIn(prefix, true)
  const problems = tagProblems(root)
  const placeOfSteps = (steps: readonly PathStep[]) =>
    placeAt(offsetOf(document.contents, [...prefix, ...steps]) ?? start)
  return {
    value,
    place: placeOfSteps([]),
    ...(problems.length > 0 && { problems }),
    placeOf: (path) => placeOfSteps(parsePath(path)),
  }
}

/** The steps of a path as problems name it: fields by dot, positions in brackets, keys quoted. */
function parsePath(path: string): PathStep[] {
  const pattern = /\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g
  return [...path.matchAll(pattern)].map(([, position, quoted, field]) => {
    if (position !== undefined) return Number(position)
    return quoted === undefined ? (field ?? '') : String(JSON.parse(quoted))
  })
}

/** Offset of the deepest node on the way that exists: the key of a field, the start of an item. */
function offsetOf(root: unknown, steps: readonly PathStep[]): number | undefined {
  let node = root
  let offset: number | undefined
  for (const step of steps) {
    const next = isMap(node) ? fieldOf(node.items, step) : itemOf(node, step)
    if (next === undefined) break
    offset = next.offset ?? offset
    node = next.node
  }
  return offset
}

function fieldOf(items: readonly unknown[], step: PathStep) {
  for (const pair of items) {
    if (!isPair(pair) || !isScalar(pair.key) || String(pair.key.value) !== String(step)) continue
    return { offset: pair.key.range?.[0], node: pair.value }
  }
  return undefined
}

function itemOf(node: unknown, step: PathStep) {
  if (!isSeq(node) || typeof step !== 'number') return undefined
  const item = node.items[step] as { range?: readonly number[] } | undefined
  return item === undefined ? undefined : { offset: item.range?.[0], node: item }
}
