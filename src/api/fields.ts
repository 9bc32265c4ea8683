/** Every field of our kinds, and how far this version supports it. */
import { findPolicy } from '../policies/registry.ts'
import type { AnyProperty, Node, Support } from '../schema/field.ts'
import { typeLabel } from '../schema/label.ts'
import type { SectionName } from '../schema/section-field.ts'
import { kinds } from './kinds.ts'

/** One field of a kind. */
export interface FieldStatus {
  readonly kind: string
  /** Such as `spec.ai.groups[].providers[].name`; `[]` for items, `{}` for values of a map. */
  readonly path: string
  /** Name of the object type that has the field. */
  readonly owner: string
  readonly field: string
  readonly type: string
  readonly required: boolean
  readonly support: Support
  /** What it covers is refused, not let through, while it does not work. */
  readonly security: boolean
  readonly secret: boolean
}

const sections: Readonly<Record<string, SectionName>> = {
  Frontend: 'frontend',
  Traffic: 'traffic',
  BackendFull: 'backend',
  BackendSimple: 'backend',
  BackendWithAI: 'backend',
  BackendWithMCP: 'backend',
}

interface Inherited {
  readonly support: Support
  readonly security: boolean
}

/** Every field of our kinds below spec and status, in the order of the reference pages. */
export function listFields(): FieldStatus[] {
  return kinds
    .filter((row) => row.own)
    .flatMap((row) =>
      walk(row.kind, { type: 'object', name: row.kind, fields: row.body }, '', {
        support: 'works',
        security: false,
      }),
    )
}

/** Paths of a kind's fields that hold secrets, in the notation of `FieldStatus.path`. */
export function secretPaths(kind: string): readonly string[] {
  const row = kinds.find((one) => one.kind === kind)
  if (row === undefined) return []
  const root: Node = { type: 'object', name: kind, fields: row.body }
  return walk(kind, root, '', { support: 'works', security: false })
    .filter(({ secret }) => secret)
    .map(({ path }) => path)
}

/** Where a kind has CEL expressions. */
interface ExpressionPath {
  /** In the notation of `FieldStatus.path`, such as `spec.ai.groups[].providers[].name`. */
  readonly path: string
  /** What it covers is refused, not let through, while it does not work. */
  readonly security: boolean
}

/** Paths of a kind's CEL expressions, those that are items of lists or values of maps included. */
export function expressionPaths(kind: string): readonly ExpressionPath[] {
  const row = kinds.find((one) => one.kind === kind)
  if (row === undefined) return []
  const root: Node = { type: 'object', name: kind, fields: row.body }
  return walkExpressions(root, '', { support: 'works', security: false })
}

function walkExpressions(node: Node, path: string, inherited: Inherited): ExpressionPath[] {
  if (node.name === 'CELExpression') return [{ path, security: inherited.security }]
  if (node.type === 'list') return walkExpressions(node.items, `${path}[]`, inherited)
  if (node.type === 'map') return walkExpressions(node.values, `${path}{}`, inherited)
  if (node.type !== 'object') return []
  return Object.entries(node.fields).flatMap(([field, property]) => {
    const own = judge(node.name ?? '', field, property, inherited)
    const at = path === '' ? field : `${path}.${field}`
    return walkExpressions(property.schema.node, at, own)
  })
}

function walk(kind: string, node: Node, path: string, inherited: Inherited): FieldStatus[] {
  if (node.type === 'list') return walk(kind, node.items, `${path}[]`, inherited)
  if (node.type === 'map') return walk(kind, node.values, `${path}{}`, inherited)
  if (node.type !== 'object') return []
  const owner = node.name ?? ''
  return Object.entries(node.fields).flatMap(([field, property]) => {
    const own = judge(owner, field, property, inherited)
    const at = path === '' ? field : `${path}.${field}`
    const { node: below } = property.schema
    const status = {
      kind,
      path: at,
      owner,
      field,
      type: typeLabel(below),
      required: property.required,
      secret: property.secret === true,
      ...own,
    }
    const inner = walk(kind, below, at, own)
    return [{ ...status, support: supportOfWhole(status, inner) }, ...inner]
  })
}

/** A field of fields of which none works does not work either. */
function supportOfWhole({ support }: FieldStatus, inner: readonly FieldStatus[]): Support {
  const isEmpty = inner.length > 0 && inner.every((field) => field.support !== 'works')
  return support === 'works' && isEmpty ? 'pending' : support
}

/** What does not work above does not work below. */
function judge(
  owner: string,
  field: string,
  property: AnyProperty,
  inherited: Inherited,
): Inherited {
  const section = sections[owner]
  const policy = section === undefined ? undefined : findPolicy(section, field)
  const own = property.support ?? 'works'
  return {
    support: inherited.support === 'works' ? own : inherited.support,
    security: inherited.security || property.security === true || policy?.security === true,
  }
}
