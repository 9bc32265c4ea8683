/** Lists every field of our kinds, and to what degree this version supports it. */

import type { AnyProperty, Node, Support } from '../../ground/schema/field.ts'
import { typeLabel } from '../../ground/schema/label.ts'
import type { SecretContent } from '../../ground/secrets/placeholder.ts'
import type { ApiKind } from './kind.ts'
import { kinds } from './kinds.ts'

/** One field of a kind. */
export interface FieldStatus {
  readonly kind: string
  /** Path such as `spec.ai.groups[].providers[].name`; `[]` stands for list items, `{}` for map values. */
  readonly path: string
  /** Name of the object type that has the field. */
  readonly owner: string
  readonly field: string
  readonly type: string
  readonly required: boolean
  readonly support: Support
  /** Until the field works, the requests that it should protect are rejected. */
  readonly security: boolean
  /** Omitted if the field holds no secret. */
  readonly secret: SecretContent | undefined
}

type Inherited = Pick<FieldStatus, 'support' | 'security'>

interface VisitedField extends FieldStatus {
  /** The innermost value type: lists and maps are unwrapped to their items and values. */
  readonly content: Located
}

interface Located {
  readonly node: Node
  readonly path: string
}

/** Every field of our kinds below spec and status, in the order of the reference pages. */
export function listFields(): FieldStatus[] {
  return kinds.filter((row) => row.own).flatMap(fieldsOf)
}

/** A field that holds secrets. `path` has the notation of `FieldStatus.path`, and ends at the texts. */
interface SecretField {
  readonly path: string
  readonly holds: SecretContent
}

/** The fields of a kind that hold secrets, or credentials of headers. */
export function secretPaths(kind: string): readonly SecretField[] {
  return fieldsOfKind(kind).flatMap(({ path, content, secret }) => {
    if (secret === undefined) return []
    return [{ path: secret === 'value' ? path : content.path, holds: secret }]
  })
}

interface ExpressionPath extends Pick<FieldStatus, 'path' | 'security'> {
  /** Whether the field may have a duration instead. */
  readonly orDuration: boolean
}

/** Paths of all CEL expressions of a kind, including list items and map values. */
export function expressionPaths(kind: string): ExpressionPath[] {
  return fieldsOfKind(kind).flatMap(({ content, security }) => {
    const { path, node } = content
    const orDuration = node.name === 'DurationOrCELExpression'
    return orDuration || node.name === 'CELExpression' ? [{ path, security, orDuration }] : []
  })
}

const fieldsOfKind = (kind: string) => kinds.filter((row) => row.kind === kind).flatMap(fieldsOf)

function fieldsOf({ kind, body }: ApiKind): VisitedField[] {
  const node: Node = { type: 'object', name: kind, fields: body }
  return nestedFields(kind, { node, path: '' }, { support: 'works', security: false })
}

function nestedFields(kind: string, { node, path }: Located, inherited: Inherited): VisitedField[] {
  if (node.type !== 'object') return []
  const owner = node.name ?? ''
  return Object.entries(node.fields).flatMap(([field, property]) => {
    const own = inheritSupport(property, inherited)
    const at = path === '' ? field : `${path}.${field}`
    const content = contentOf({ node: property.schema.node, path: at })
    const status = {
      kind,
      path: at,
      owner,
      field,
      type: typeLabel(property.schema.node),
      required: property.required,
      secret: property.secret,
      content,
      ...own,
    }
    const inner = nestedFields(kind, content, own)
    return [{ ...status, support: supportOfWhole(status, inner) }, ...inner]
  })
}

function contentOf({ node, path }: Located): Located {
  if (node.type === 'list') return contentOf({ node: node.items, path: `${path}[]` })
  if (node.type === 'map') return contentOf({ node: node.values, path: `${path}{}` })
  return { node, path }
}

/** A field is `pending` if it has inner fields and none of them works. */
function supportOfWhole({ support }: FieldStatus, inner: readonly FieldStatus[]): Support {
  const isEmpty = inner.length > 0 && inner.every((field) => field.support !== 'works')
  return support === 'works' && isEmpty ? 'pending' : support
}

/** A field inherits the support of its parent unless the parent works. */
function inheritSupport(property: AnyProperty, inherited: Inherited): Inherited {
  const own = property.support ?? 'works'
  return {
    support: inherited.support === 'works' ? own : inherited.support,
    security: inherited.security || property.security === true,
  }
}
