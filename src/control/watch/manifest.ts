import { type Document, isMap, isPair, isScalar, isSeq, LineCounter } from 'yaml'
import { fail, failAll, type Outcome, succeed } from '../../ground/base/outcome.ts'
import { expandList, type FieldProblem, type PathStep } from '../api/validate.ts'
import { nodeProblem, startOf, tagProblems } from './manifest-nodes.ts'
import { decodeManifest, jsonTexts } from './manifest-text.ts'
import { type PlainDocument, type PlainOffsets, readPlainYaml } from './plain-yaml.ts'
import type { SourceProblem } from './source-problem.ts'
import { NestingError, parseYamlDocuments } from './yaml-documents.ts'
import { yamlErrorText } from './yaml-errors.ts'

/** A position in a file; lines and columns begin at 1. */
interface Location {
  readonly line: number
  readonly column: number
}

/** One object of a file, as it was written. */
export interface ManifestObject {
  readonly value: unknown
  readonly place: Location
  /** Problems of the object's YAML notation. Not set if there are none. */
  readonly problems?: readonly FieldProblem[]
  /**
   * Returns the location of a field such as `spec.rules[0].matches`: of its name, or of the list item. For a
   * missing field, returns the location of the closest existing field around it.
   */
  placeOf(path: string): Location
}

/** A document and the offset of its text in the file. */
interface PlacedDocument {
  readonly document: Document.Parsed
  readonly start: number
}

type LocationAt = (offset: number) => Location

/**
 * Returns the objects of a YAML or JSON file, in order: one for each document, or for each item of a List. If
 * there is a syntax error, the whole file is refused, since the error may have moved the border between
 * documents. Messages never repeat content, which may be secret.
 */
export function parseManifest(
  content: string | Uint8Array,
  file: string,
): Outcome<readonly ManifestObject[], SourceProblem> {
  const syntax = (place: Location, message: string): SourceProblem => {
    return { severity: 'error', reason: 'syntax', file, ...place, message }
  }
  const text = typeof content === 'string' ? content : decodeManifest(content)
  if (typeof text !== 'string') return fail(syntax({ line: text.line, column: 1 }, text.message))
  const plain = readPlainYaml(text)
  if (plain !== undefined && !plain.some(({ value }) => isList(value))) {
    return succeed(plainObjects(text, plain))
  }
  const found = parseUnlessNested(text)
  if (found instanceof NestingError) {
    const place = new LineStarts(text).placeAt(found.offset)
    return fail(syntax(place, `not read: ${found.message}`))
  }
  const { documents, placeAt } = found
  const errors = documents.flatMap(({ document, start }) => {
    // Only the first error of a document is reported, since the others mostly follow from it.
    const [error] = document.errors
    if (error === undefined) return []
    return [syntax(placeAt(start + error.pos[0]), yamlErrorText(error, text.slice(start)))]
  })
  if (errors.length > 0) return failAll(errors)
  const objects: ManifestObject[] = []
  for (const { document, start } of documents) {
    const placed: LocationAt = (offset) => placeAt(start + offset)
    const problem = nodeProblem(document)
    if (problem !== undefined) return fail(syntax(placed(problem.offset), problem.message))
    try {
      objects.push(...objectsOf(document, placed))
    } catch {
      // The only remaining failure is the limit of aliases.
      return fail(syntax(placed(startOf(document)), 'has too many aliases'))
    }
  }
  return succeed(objects)
}

/** Whether a document is a list of objects, which the complete parser splits into its items. */
const isList = (value: PlainDocument['value']) => expandList(value)[0]?.input !== value

/** The objects of a text in plain YAML. Only a question about fields makes a reader look for them again. */
function plainObjects(text: string, plain: readonly PlainDocument[]): ManifestObject[] {
  const lines = new LineStarts(text)
  let again: PlacedTexts | undefined
  let parsed: ReadonlyMap<number, ManifestObject> | undefined
  return plain.map(({ value, start }) => ({
    value,
    place: lines.placeAt(start),
    placeOf: (path) => {
      again ??= placedTexts(text)
      const offset = plainOffset(again, start, parsePath(path))
      if (offset !== undefined) return again.placeAt(offset)
      parsed ??= objectsByStart(text)
      return parsed.get(start)?.placeOf(path) ?? lines.placeAt(start)
    },
  }))
}

interface PlacedTexts {
  readonly offsets: PlainOffsets
  /** The documents by the offsets at which they start. */
  readonly byStart: ReadonlyMap<number, unknown>
  readonly placeAt: LocationAt
}

function placedTexts(text: string): PlacedTexts {
  const offsets: PlainOffsets = new Map()
  const documents = readPlainYaml(text, offsets) ?? []
  const lineCounter = new LineCounter()
  lineCounter.addNewLine(0)
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) {
    lineCounter.addNewLine(at + 1)
  }
  return {
    offsets,
    byStart: new Map(documents.map(({ value, start }) => [start, value])),
    placeAt: locationsOf(lineCounter),
  }
}

/**
 * Offset of the deepest existing field on the path; undefined if only the complete parser knows where it is.
 */
function plainOffset(
  { offsets, byStart }: PlacedTexts,
  start: number,
  steps: readonly PathStep[],
): number | undefined {
  let value = byStart.get(start)
  let offset = start
  for (const step of steps) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) break
    const next = offsets.get(value)?.get(step)
    if (next === undefined) return undefined
    offset = next
    value = (value as Readonly<Record<PathStep, unknown>>)[step]
  }
  return offset
}

/** The objects of a valid text by the offsets at which they start. */
function objectsByStart(text: string): Map<number, ManifestObject> {
  const { documents, placeAt } = parseDocuments(text)
  return new Map(
    documents.flatMap(({ document }) =>
      objectsOf(document, placeAt).map((object) => [startOf(document), object] as const),
    ),
  )
}

/** Finds lines of offsets that rise. */
class LineStarts {
  readonly #text: string
  #line = 1
  #start = 0

  constructor(text: string) {
    this.#text = text
  }

  placeAt(offset: number): Location {
    if (offset < this.#start) [this.#line, this.#start] = [1, 0]
    for (;;) {
      const end = this.#text.indexOf('\n', this.#start)
      if (end < 0 || end >= offset) break
      this.#line++
      this.#start = end + 1
    }
    return { line: this.#line, column: offset - this.#start + 1 }
  }
}

/**
 * Merge keys (`<<`) are not part of YAML 1.2, but kubectl accepts them. Values with tags of types that JSON
 * does not have are not converted; `tagProblems` refuses them.
 */
export const parseOptions = {
  prettyErrors: false,
  merge: true,
  resolveKnownTags: false,
  // `nodeProblem` finds repeated keys.
  uniqueKeys: false,
} as const

interface PlacedDocuments {
  readonly documents: readonly PlacedDocument[]
  readonly placeAt: LocationAt
}

function parseUnlessNested(text: string): PlacedDocuments | NestingError {
  try {
    return parseDocuments(text)
  } catch (error) {
    if (error instanceof NestingError) return error
    throw error
  }
}

/** @throws NestingError */
function parseDocuments(text: string): PlacedDocuments {
  const lineCounter = new LineCounter()
  const whole = parseYamlDocuments(text, parseOptions, lineCounter)
  const placeAt = locationsOf(lineCounter)
  const isWhole = whole.every(({ errors }) => errors.length === 0)
  const pieces = isWhole || !/^\s*\{/.test(text) ? [] : jsonTexts(text)
  if (pieces.length < 2) {
    return { documents: whole.map((document) => ({ document, start: 0 })), placeAt }
  }
  const documents = pieces.flatMap((piece) =>
    parseYamlDocuments(piece.text, parseOptions).map((document) => ({
      document,
      start: piece.start,
    })),
  )
  return { documents, placeAt }
}

function locationsOf(lineCounter: LineCounter): LocationAt {
  return (offset) => {
    const { line, col } = lineCounter.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
}

function objectsOf(document: Document.Parsed, placeAt: LocationAt): ManifestObject[] {
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
  placeAt: LocationAt,
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

/** Parses the path of a problem: fields after dots; list positions and quoted map keys in brackets. */
function parsePath(path: string): PathStep[] {
  const pattern = /\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g
  return [...path.matchAll(pattern)].map(([, position, quoted, field]) => {
    if (position !== undefined) return Number(position)
    return quoted === undefined ? (field ?? '') : String(JSON.parse(quoted))
  })
}

/** Offset of the deepest existing node on the path: the key of a field, or the start of an item. */
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
