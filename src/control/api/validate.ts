/** Validates whole objects as they come in from files and watches. */

import { isObject } from '../../ground/base/json-object.ts'
import { failAll, type Outcome, succeed } from '../../ground/base/outcome.ts'
import { nearest } from '../../ground/base/suggest.ts'
import { gatewayGroup, inferenceGroup, ownGroup } from '../../ground/model/api-names.ts'
import { check, type FieldProblem } from '../../ground/schema/check.ts'
import { foreignAdvice } from './foreign-kinds.ts'
import type { ApiKind } from './kind.ts'
import { apiVersionOf } from './kind.ts'
import { type ApiObject, findKind, kinds, splitApiVersion } from './kinds.ts'

export type { FieldProblem } from '../../ground/schema/check.ts'
export { formatPath, type PathStep } from '../../ground/schema/path.ts'

/** Namespace of a namespaced object whose manifest sets none. */
export const defaultNamespace = 'default'

const fail = (path: string, message: string): Outcome<never, FieldProblem> =>
  failAll([{ path, message }])

/**
 * Whether the object is of a kind that this gateway does not read, such as a Deployment in the same manifest.
 * Such objects are ignored. Unknown kinds of our own group and of the Gateway API are errors instead.
 */
export function isForeign(input: unknown): input is { apiVersion: string; kind: string } {
  if (!isObject(input)) return false
  const { apiVersion, kind } = input
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return false
  if (apiVersion === '' || kind === '') return false
  const { group } = splitApiVersion(apiVersion)
  if (group === ownGroup || group === gatewayGroup) return false
  return findKind(apiVersion, kind) === undefined
}

/**
 * Whether a foreign object concerns gateways anyway. Its group extends the Gateway API, or another version of
 * its kind is read, or it is of another gateway or another group by mistake. Users may expect such an object to have an effect.
 */
export function isRelated({ apiVersion, kind }: { apiVersion: string; kind: string }): boolean {
  const { group } = splitApiVersion(apiVersion)
  if (relatedGroups.has(group)) return true
  if (kinds.some((row) => row.kind === kind && row.group === group)) return true
  return foreignAdvice(group, kind) !== undefined
}

/** Why a foreign object has no effect, and what to write instead if that is known. */
export function foreignText({ apiVersion, kind }: { apiVersion: string; kind: string }): string {
  const advice = foreignAdvice(splitApiVersion(apiVersion).group, kind)
  const text = `${apiVersion} ${kind} is not read and has no effect`
  return advice === undefined ? text : `${text}; ${advice}`
}

const relatedGroups = new Set([
  inferenceGroup,
  'gateway.networking.x-k8s.io',
  'inference.networking.x-k8s.io',
])

/**
 * Validates an object of any kind in the table. The result is a copy with the first apiVersion of its
 * kind, a namespace (for namespaced kinds), the defaults of upstream CRDs, and the stringData of a
 * Secret merged into its data. The input is not changed.
 */
export function validateObject(input: unknown): Outcome<ApiObject, FieldProblem> {
  if (!isObject(input)) return fail('', 'must be an object')
  const { apiVersion, kind } = input
  if (typeof apiVersion !== 'string') return fail('apiVersion', stringProblem(apiVersion))
  if (typeof kind !== 'string') return fail('kind', stringProblem(kind))
  const row = findKind(apiVersion, kind)
  if (row === undefined) return unknownKind(apiVersion, kind)
  const shapeFailure = shapeProblem(input, maxDepth)
  if (shapeFailure !== undefined) return fail('', shapeFailure)
  const { version } = splitApiVersion(apiVersion)
  const outcome = check(row.schemaOf(version), withoutServerNulls(input))
  const misplaced = namespaceProblems(row, input)
  if (!outcome.ok) return failAll([...outcome.problems, ...misplaced])
  if (misplaced.length > 0) return failAll(misplaced)
  return succeed(normalise(row, outcome.value as Checked))
}

// YAML anchors can make an object contain itself, and the code after validation could not handle that.
const maxDepth = 128
const tooDeep = `must not be nested deeper than ${maxDepth} levels, nor be a part of itself`

const prototypeKey = 'must not have a field named __proto__'
const noUnicode = 'must not hold half of a surrogate pair, which is no character'

/**
 * Finds problems that no schema finds: too deep nesting, a key with a special meaning in JavaScript,
 * and text that cannot be encoded as UTF-8.
 */
function shapeProblem(value: unknown, levels: number): string | undefined {
  if (typeof value === 'string' && !value.isWellFormed()) return noUnicode
  if (typeof value !== 'object' || value === null) return undefined
  if (levels === 0) return tooDeep
  if (Object.hasOwn(value, '__proto__')) return prototypeKey
  for (const name of Object.keys(value)) {
    const part = value[name as keyof typeof value]
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
    return fail('apiVersion', `${apiVersion} is not known for ${kind}; known: ${known.join(', ')}`)
  }
  const names = sameGroup.map((row) => row.kind)
  if (names.length > 0) {
    const meant = nearest(kind, names)
    const hint = meant === undefined ? `known: ${names.join(', ')}` : `did you mean ${meant}?`
    return fail(
      'kind',
      `${kind} is not a kind of ${group === '' ? 'the core group' : group}; ${hint}`,
    )
  }
  const elsewhere = sameKind.map(apiVersionOf)
  const hint = elsewhere.length > 0 ? `; ${kind} is known in ${elsewhere.join(', ')}` : ''
  return fail('apiVersion', `${apiVersion} is not known${hint}`)
}

/** Removes null values from metadata: many tools write `creationTimestamp: null` for a new object. */
function withoutServerNulls(input: Record<string, unknown>): Record<string, unknown> {
  const { metadata } = input
  if (!isObject(metadata)) return input
  const kept = Object.entries(metadata).filter(
    ([name, value]) => value !== null || !nullable.has(name),
  )
  return { ...input, metadata: Object.fromEntries(kept) }
}

const nullable = new Set(['creationTimestamp', 'labels', 'annotations', 'managedFields'])

function namespaceProblems(row: ApiKind, input: Record<string, unknown>): FieldProblem[] {
  const metadata = isObject(input.metadata) ? input.metadata : {}
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

/** Merges stringData into data, as the API server does. */
function joinSecretData({ stringData, data, ...rest }: Checked): Checked {
  if (stringData === undefined) return data === undefined ? rest : { ...rest, data }
  const encoded = Object.entries(stringData).map(([key, value]) => [
    key,
    Buffer.from(value, 'utf8').toString('base64'),
  ])
  return { ...rest, data: { ...data, ...Object.fromEntries(encoded) } }
}

/** An object of a list, and its path in the list. */
interface ListedObject {
  readonly input: unknown
  /** Empty or such as `items[2]`; it is put in front of the paths of the object's problems. */
  readonly path: string
}

/** Returns the items of a `List` or of a typed list such as `SecretList`, or the input itself. */
export function expandList(input: unknown): readonly ListedObject[] {
  if (!isObject(input) || !Array.isArray(input.items)) return [{ input, path: '' }]
  const { apiVersion, kind, items } = input
  if (typeof kind !== 'string' || !kind.endsWith('List')) return [{ input, path: '' }]
  const itemKind = kind.slice(0, -'List'.length)
  return items.map((item: unknown, index) => ({
    // Items of a typed list may omit apiVersion and kind, because the list implies them.
    input: isObject(item) && itemKind !== '' ? { apiVersion, kind: itemKind, ...item } : item,
    path: `items[${index}]`,
  }))
}
