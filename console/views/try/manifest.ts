/** What the editor knows about manifests: their problems, and the fields that fit at a place. */

import { type ApiKind, apiVersionOf } from '../../../src/control/api/kind.ts'
import { kinds } from '../../../src/control/api/kinds.ts'
import { isForeign, validateObject } from '../../../src/control/api/validate.ts'
import { parseManifest } from '../../../src/control/watch/manifest.ts'
import type { Node } from '../../../src/ground/schema/field.ts'
import { typeLabel } from '../../../src/ground/schema/label.ts'

interface ManifestProblem {
  /** Line and column from 1. */
  readonly line: number
  readonly column: number
  readonly message: string
}

/** Problems of the objects of a manifest, as `sluice validate` reports them. */
export function manifestProblems(text: string): ManifestProblem[] {
  const parsed = parseManifest(text, '')
  if (!parsed.ok) {
    return parsed.problems.map(({ line = 1, column = 1, message }) => ({ line, column, message }))
  }
  return parsed.value.flatMap(({ value, problems = [], placeOf }) => {
    const checked = isForeign(value) ? undefined : validateObject(value)
    const found = checked === undefined || checked.ok ? [] : checked.problems
    return [...problems, ...found].map(({ path, message }) => ({
      ...placeOf(path),
      message: path === '' ? message : `${path} ${message}`,
    }))
  })
}

interface Suggestion {
  readonly label: string
  readonly detail?: string
  readonly info?: string
}

const topFields = ['apiVersion', 'kind', 'metadata', 'spec']

/** The fields or values that fit at an offset of a manifest. */
export function suggestionsAt(text: string, offset: number): readonly Suggestion[] {
  const start = text.lastIndexOf('\n---', offset - 1)
  const end = text.indexOf('\n---', offset)
  const object = text.slice(start < 0 ? 0 : start + 4, end < 0 ? text.length : end)
  const lines = text.slice(start < 0 ? 0 : start + 4, offset).split('\n')
  const line = lines.pop() ?? ''
  const [, key] = /^[\s-]*([\w.-]+):\s+\S*$/.exec(line) ?? []
  const path = [...pathTo(lines, indentOf(line)), ...(key === undefined ? [] : [key])]
  const kind = kindOf(object)
  if (path.length === 1 && key === 'kind') return kinds.map((row) => kindSuggestion(row))
  if (path.length === 1 && key === 'apiVersion') {
    return [...new Set(kinds.map(apiVersionOf))].map((label) => ({ label }))
  }
  if (kind === undefined) return path.length === 0 ? topFields.map((label) => ({ label })) : []
  const node = nodeAt(kind.schema.node, path)
  return node === undefined ? [] : key === undefined ? fieldsOf(node) : valuesOf(node)
}

const kindSuggestion = (row: ApiKind): Suggestion => ({
  label: row.kind,
  detail: apiVersionOf(row),
  info: row.doc,
})

/** The kind that an object names, in whichever version. */
function kindOf(text: string): ApiKind | undefined {
  const [, name] = /^kind:\s*["']?(\w+)/m.exec(text) ?? []
  const [, version = ''] = /^apiVersion:\s*["']?([\w./-]+)/m.exec(text) ?? []
  return kinds.find((row) => row.kind === name && version.startsWith(row.group))
}

/** Column of the first key of a line; the marks of list items count as indentation. */
const indentOf = (line: string): number => /^[\s-]*/.exec(line)?.[0].length ?? 0

/** The keys around a line with an indentation, from the outermost. */
function pathTo(before: readonly string[], indent: number): string[] {
  const path: string[] = []
  let below = indent
  for (const line of [...before].reverse()) {
    const [, key] = /^[\s-]*([\w./-]+):(?:\s|$)/.exec(line) ?? []
    if (key === undefined || indentOf(line) >= below) continue
    path.unshift(key)
    below = indentOf(line)
  }
  return path
}

/** The schema at a path. Items of lists have the path of their list. */
function nodeAt(root: Node, path: readonly string[]): Node | undefined {
  let node: Node | undefined = root
  for (const key of path) {
    node = node && insideLists(node)
    if (node?.type === 'object') node = node.fields[key]?.schema.node
    else node = node?.type === 'map' ? node.values : undefined
  }
  return node && insideLists(node)
}

function insideLists(node: Node): Node {
  let inside = node
  while (inside.type === 'list') inside = inside.items
  return inside
}

function fieldsOf(node: Node): Suggestion[] {
  if (node.type !== 'object') return valuesOf(node)
  return Object.entries(node.fields).map(([name, { schema, doc, required }]) => ({
    label: name,
    detail: `${typeLabel(schema.node)}${required ? ', required' : ''}`,
    info: doc,
  }))
}

function valuesOf(node: Node): Suggestion[] {
  if (node.type === 'boolean') return [{ label: 'true' }, { label: 'false' }]
  if (node.type !== 'text') return []
  return (node.values ?? []).map((label) => ({ label, info: node.meanings?.[label] }))
}
