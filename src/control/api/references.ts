/** Finds the references of an object to other objects, by the schema of its kind. */
import { isObject } from '../../ground/base/json-object.ts'
import type { Node, ObjectNode } from '../../ground/schema/field.ts'
import { formatPath, type PathStep } from '../../ground/schema/path.ts'
import { findKind, kinds } from './kinds.ts'

/** A reference to an object of a kind in the table, by name or by labels. */
export interface Reference {
  /** Path of the reference, such as `spec.parentRefs[0]`. */
  readonly path: string
  readonly group: string
  readonly kind: string
  /** Empty if the kind has no namespaces. */
  readonly namespace: string
  readonly by:
    | { readonly field: 'name' | ''; readonly name: string }
    | { readonly field: 'matchLabels'; readonly labels: Readonly<Record<string, string>> }
  readonly sectionName?: string
  readonly port?: number
}

interface ReferringObject {
  readonly apiVersion: string
  readonly kind: string
  readonly spec?: unknown
}

/** The references in the spec of a valid object. `namespace` is that of the object. */
export function referencesOf(object: ReferringObject, namespace: string): Reference[] {
  const { apiVersion, kind, spec } = object
  const body = findKind(apiVersion, kind)?.body.spec
  // A ReferenceGrant permits references; its own fields are none.
  if (body === undefined || kind === 'ReferenceGrant') return []
  const found: Reference[] = []
  walk(body.schema.node, spec, ['spec'], (node, value, path) => {
    const reference = referenceAt(node, value, namespace)
    if (reference !== undefined) found.push({ ...reference, path: formatPath(path) })
  })
  return found
}

type Visit = (node: Node, value: unknown, path: readonly PathStep[]) => void

function walk(node: Node, value: unknown, path: readonly PathStep[], visit: Visit): void {
  visit(node, value, path)
  if (node.type === 'list' && Array.isArray(value)) {
    value.forEach((item, index) => {
      walk(node.items, item, [...path, index], visit)
    })
  }
  if (!isObject(value)) return
  for (const [field, part] of Object.entries(value)) {
    const inner = partOf(node, field)
    if (inner !== undefined) walk(inner, part, [...path, field], visit)
  }
}

function partOf(node: Node, field: string): Node | undefined {
  if (node.type === 'map') return node.values
  if (node.type !== 'object' || !Object.hasOwn(node.fields, field)) return undefined
  return node.fields[field]?.schema.node
}

function referenceAt(
  node: Node,
  value: unknown,
  ownNamespace: string,
): Omit<Reference, 'path'> | undefined {
  const by = selectionOf(node, value)
  const target = by && targetOf(node, value)
  const row =
    target && kinds.find(({ group, kind }) => group === target.group && kind === target.kind)
  if (by === undefined || row === undefined) return undefined
  // All models that refer to the rule, which may be none.
  if (row.kind === 'AgentgatewayModel' && 'name' in by && by.name === '*') return undefined
  const { namespace = ownNamespace, sectionName, port } = isObject(value) ? value : {}
  // A reference from a cluster-scoped object that lacks its namespace is an error of its own.
  if (typeof namespace !== 'string' || (row.namespaced && namespace === '')) return undefined
  return {
    group: row.group,
    kind: row.kind,
    namespace: row.namespaced ? namespace : '',
    by,
    ...(typeof sectionName === 'string' && { sectionName }),
    ...(typeof port === 'number' && { port }),
  }
}

/** By what a reference selects its objects; undefined if it has neither a name nor labels. */
function selectionOf(node: Node, value: unknown): Reference['by'] | undefined {
  if (node.type === 'text' && typeof value === 'string') return { field: '', name: value }
  if (!isObject(value)) return undefined
  const { name, matchLabels } = value
  if (typeof name === 'string') return { field: 'name', name }
  if (!isObject(matchLabels)) return undefined
  return { field: 'matchLabels', labels: matchLabels as Readonly<Record<string, string>> }
}

/** Group and kind of what a value refers to; undefined if it is no reference. */
function targetOf(node: Node, value: unknown) {
  const isPlain = node.type !== 'object' || !isObject(value)
  if (node.refersTo !== undefined) {
    const named = isPlain ? undefined : textOf(node, value, 'kind')
    return kinds.find(({ kind }) => kind === (named ?? node.refersTo))
  }
  if (isPlain) return undefined
  const [group, kind] = [textOf(node, value, 'group'), textOf(node, value, 'kind')]
  return group === undefined || kind === undefined ? undefined : { group, kind }
}

/** A field of a reference, or its default. */
function textOf({ fields }: ObjectNode, value: object, field: string): string | undefined {
  const written = (value as Record<string, unknown>)[field]
  const text = written ?? fields[field]?.fill ?? fields[field]?.default
  return typeof text === 'string' ? text : undefined
}
