import {
  type Document,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  visit,
  type YAMLError,
} from 'yaml'
import { expandList } from '../api/validate.ts'
import { failAll, type Outcome, succeed } from '../base/outcome.ts'
import type { SourceProblem } from './source-problem.ts'

/** A place in a file; both begin at 1. */
export interface Place {
  readonly line: number
  readonly column: number
}

/** One object of a file, as it was written. */
export interface ManifestObject {
  readonly value: unknown
  readonly place: Place
  /**
   * Where a field such as `spec.rules[0].matches` stands: its name, or the item of a list. A field
   * that is not there gives the place of the closest one around it.
   */
  placeOf(path: string): Place
}

/**
 * The objects of a YAML or JSON file, in order: each document is one, and lists of objects are
 * taken apart. A syntax error anywhere refuses the file as a whole, since it may have moved the
 * border between documents. Messages never repeat what was written: it may be secret.
 */
export function parseManifest(
  text: string,
  file: string,
): Outcome<readonly ManifestObject[], SourceProblem> {
  const lineCounter = new LineCounter()
  const documents = [...parseAllDocuments(text, { lineCounter, prettyErrors: false })]
  const placeAt = (offset: number): Place => {
    const { line, col } = lineCounter.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const errors = documents.flatMap((document) => document.errors)
  if (errors.length > 0) return failAll(errors.map((error) => syntaxProblem(error, file, placeAt)))
  const objects: ManifestObject[] = []
  for (const document of documents) {
    const missing = missingAnchor(document)
    if (missing !== undefined) {
      const message = 'not YAML: an alias names an anchor that is not set before it'
      return failAll([{ severity: 'error', reason: 'syntax', file, ...placeAt(missing), message }])
    }
    try {
      objects.push(...objectsOf(document, placeAt))
    } catch {
      // The only failure left is the guard against aliases that grow without bound.
      const place = placeAt(document.contents?.range[0] ?? document.range[0])
      return failAll([
        { severity: 'error', reason: 'syntax', file, ...place, message: 'has too many aliases' },
      ])
    }
  }
  return succeed(objects)
}

function syntaxProblem(
  error: YAMLError,
  file: string,
  placeAt: (offset: number) => Place,
): SourceProblem {
  // What follows ': "' is a piece of the file.
  const message = error.message.replace(/:? ?["'].*$/s, '').replace(/\s+/g, ' ')
  return {
    severity: 'error',
    reason: 'syntax',
    file,
    ...placeAt(error.pos[0]),
    message: `not YAML: ${message}`,
  }
}

/** Offset of the first alias without an anchor. */
function missingAnchor(document: Document.Parsed): number | undefined {
  let offset: number | undefined
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) !== undefined) return undefined
      offset = alias.range?.[0] ?? document.range[0]
      return visit.BREAK
    },
  })
  return offset
}

function objectsOf(
  document: Document.Parsed,
  placeAt: (offset: number) => Place,
): ManifestObject[] {
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
  placeAt: (offset: number) => Place,
): ManifestObject {
  const start = document.contents?.range[0] ?? document.range[0]
  const placeOfSteps = (steps: readonly PathStep[]) =>
    placeAt(offsetOf(document.contents, [...prefix, ...steps]) ?? start)
  return {
    value,
    place: placeOfSteps([]),
    placeOf: (path) => placeOfSteps(parsePath(path)),
  }
}

type PathStep = string | number

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
