/** Validation of whole objects at the edge: whatever comes in from files or watches. */
import { failAll, type Outcome, succeed } from '../base/outcome.ts'
import { check, type FieldProblem } from '../schema/check.ts'
import { isPlainObject } from '../schema/compile.ts'
import { nearest } from '../schema/suggest.ts'
import type { ApiKind } from './kind.ts'
import { apiVersionOf } from './kind.ts'
import { type ApiObject, findKind, kinds, splitApiVersion } from './kinds.ts'
import { gatewayGroup, ownGroup } from './names.ts'

export type { FieldProblem } from '../schema/check.ts'
export { formatPath, type PathStep } from '../schema/path.ts'

/** Namespace of a namespaced object whose manifest names none. */
export const defaultNamespace = 'default'

const one = (path: string, message: string): Outcome<never, FieldProblem> =>
  failAll([{ path, message }])

/**
 * An object with apiVersion and kind that is not for us, such as a Deployment in the same manifest:
 * to be ignored, not refused. Unknown kinds of our own group and of the Gateway API are not foreign.
 */
export function isForeign(input: unknown): boolean {
  if (!isPlainObject(input)) return false
  const { apiVersion, kind } = input
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return false
  if (apiVersion === '' || kind === '') return false
  const { group } = splitApiVersion(apiVersion)
  if (group === ownGroup || group === gatewayGroup) return false
  return findKind(apiVersion, kind) === undefined
}

/**
 * Checks an object of any kind in the table. The outcome's value is a copy with the stored
 * apiVersion, a namespace (for namespaced kinds), the defaults that upstream CRDs write, and the
 * data of a Secret in one form; the input is never changed.
 */
export function validateObject(input: unknown): Outcome<ApiObject, FieldProblem> {
  if (!isPlainObject(input)) return one('', 'must be an object')
  const { apiVersion, kind } = input
  if (typeof apiVersion !== 'string') return one('apiVersion', stringProblem(apiVersion))
  if (typeof kind !== 'string') return one('kind', stringProblem(kind))
  const row = findKind(apiVersion, kind)
  if (row === undefined) return unknownKind(apiVersion, kind)
  const unusual = shapeProblem(input, maxDepth)
  if (unusual !== undefined) return one('', unusual)
  const { version } = splitApiVersion(apiVersion)
  const outcome = check(row.schemaOf(version), withoutServerNulls(input))
  const misplaced = namespaceProblems(row, input)
  if (!outcome.ok) return failAll([...outcome.problems, ...misplaced])
  if (misplaced.length > 0) return failAll(misplaced)
  return succeed(normalise(row, outcome.value as Checked))
}

// YAML anchors can make an object a part of itself, which nothing behind this door expects.
const maxDepth = 128
const tooDeep = `must not be nested deeper than ${maxDepth} levels, nor be a part of itself`

const prototypeKey = 'must not have a field named __proto__'
const noUnicode = 'must not hold half of a surrogate pair, which is no character'

/**
 * What no schema sees: nesting without end, a key that means something else to JavaScript, and text
 * that UTF-8 cannot carry to a log or a proxy.
 */
function shapeProblem(value: unknown, levels: number): string | undefined {
  if (typeof value === 'string' && !value.isWellFormed()) return noUnicode
  if (typeof value !== 'object' || value === null) return undefined
  if (levels === 0) return tooDeep
  if (Object.hasOwn(value, '__proto__')) return prototypeKey
  for (const [name, part] of Object.entries(value)) {
    const problem = name.isWellFormed() ? shapeProblem(part, levels - 1) : noUnicode
    if (problem !== undefined) return problem
  }
  return undefined
}

const stringProblem = (value: unknown): string =>
  value === undefined || value === null ? 'is required' : 'must be a string'

function unknownKind(apiVersion: string, kind: string): Outcome<never, FieldProblem> {
  const { group } = splitApiVersion(apiVersion)
  const sameKind = kinds.filter((row) => row.kind === kind)
  const sameGroup = kinds.filter((row) => row.group === group)
  const inGroup = sameGroup.find((row) => row.kind === kind)
  if (inGroup !== undefined) {
    const known = inGroup.versions.map((version) => `${group}/${version}`.replace(/^\//, ''))
    return one('apiVersion', `${apiVersion} is not known for ${kind}; known: ${known.join(', ')}`)
  }
  const names = sameGroup.map((row) => row.kind)
  if (names.length > 0) {
    const meant = nearest(kind, names)
    const hint = meant === undefined ? `known: ${names.join(', ')}` : `did you mean ${meant}?`
    return one(
      'kind',
      `${kind} is not a kind of ${group === '' ? 'the core group' : group}; ${hint}`,
    )
  }
  const elsewhere = sameKind.map(apiVersionOf)
  const hint = elsewhere.length > 0 ? `; ${kind} is known in ${elsewhere.join(', ')}` : ''
  return one('apiVersion', `${apiVersion} is not known${hint}`)
}

/** `creationTimestamp: null` is what many tools write for an object that was never created. */
function withoutServerNulls(input: Record<string, unknown>): Record<string, unknown> {
  const { metadata } = input
  if (!isPlainObject(metadata)) return input
  const kept = Object.entries(metadata).filter(
    ([name, value]) => value !== null || !nullable.has(name),
  )
  return { ...input, metadata: Object.fromEntries(kept) }
}

const nullable = new Set(['creationTimestamp', 'labels', 'annotations', 'managedFields'])

function namespaceProblems(row: ApiKind, input: Record<string, unknown>): FieldProblem[] {
  const metadata = isPlainObject(input.metadata) ? input.metadata : {}
  const { namespace } = metadata
  if (typeof namespace !== 'string' || namespace === '') return []
  if (!row.namespaced) {
    return [
      { path: 'metadata.namespace', message: `must not be set: ${row.kind} has no namespace` },
    ]
  }
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)) return []
  return [{ path: 'metadata.namespace', message: 'must be a lowercase DNS label' }]
}

interface Checked {
  readonly metadata: Readonly<Record<string, unknown>> & { readonly namespace?: string }
  readonly data?: Readonly<Record<string, string>>
  readonly stringData?: Readonly<Record<string, string>>
}

function normalise(row: ApiKind, checked: Checked): ApiObject {
  const { managedFields: _, selfLink: __, ...metadata } = checked.metadata
  const namespace = row.namespaced ? metadata.namespace || defaultNamespace : ''
  const whole = {
    ...(row.kind === 'Secret' ? joinSecretData(checked) : checked),
    apiVersion: apiVersionOf(row),
    metadata: { ...metadata, namespace },
  }
  return whole as unknown as ApiObject
}

/** As the API server does: stringData is written into data and is gone. */
function joinSecretData({ stringData, data, ...rest }: Checked): Checked {
  if (stringData === undefined) return data === undefined ? rest : { ...rest, data }
  const encoded = Object.entries(stringData).map(([key, value]) => [
    key,
    Buffer.from(value, 'utf8').toString('base64'),
  ])
  return { ...rest, data: { ...data, ...Object.fromEntries(encoded) } }
}

/** An item of a list, and where it stands in it. */
interface ListedObject {
  readonly input: unknown
  /** Empty, or `items[2]`; problems of the item are below it. */
  readonly path: string
}

/** The objects of a `List` or of a list kind; any other input is its own only item. */
export function expandList(input: unknown): readonly ListedObject[] {
  if (!isPlainObject(input) || !Array.isArray(input.items)) return [{ input, path: '' }]
  const { apiVersion, kind, items } = input
  if (typeof kind !== 'string' || !kind.endsWith('List')) return [{ input, path: '' }]
  const itemKind = kind.slice(0, -'List'.length)
  return items.map((item: unknown, index) => ({
    // Items of a typed list may leave out what the list already says.
    input: isPlainObject(item) && itemKind !== '' ? { apiVersion, kind: itemKind, ...item } : item,
    path: `items[${index}]`,
  }))
}
