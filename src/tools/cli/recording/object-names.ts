/** How commands read and print the names of objects. */
import type { ObjectRef } from '../../../ground/model/names.ts'
import { UsageError } from '../shared/output.ts'

const clusterKinds = new Set(['GatewayClass', 'Namespace'])

/**
 * Reads `KIND/NAMESPACE/NAME`, or `KIND/NAME` for cluster-scoped kinds and the namespace `default`.
 * @throws UsageError
 */
export function parseObjectPath(path: string): ObjectRef {
  const [kind = '', ...rest] = path.split('/')
  const [first, second] = rest
  if (kind === '' || !first || rest.length > 2 || second === '') {
    throw new UsageError(`${path} is not KIND/NAMESPACE/NAME`)
  }
  if (second !== undefined) return { kind, namespace: first, name: second }
  const namespace = clusterKinds.has(kind) ? '' : 'default'
  return { kind, namespace, name: first }
}

const maxSuggestions = 5

/** Returns a hint that lists objects of the same kind; empty if the object is among those that are known. */
export function suggestObjects(ref: ObjectRef, known: readonly ObjectRef[]): string {
  const names = known
    .filter(({ kind }) => kind === ref.kind)
    .map(({ namespace, name }) => (namespace ? `${namespace}/${name}` : name))
    .sort()
  if (names.length === 0) return `: the log has no ${ref.kind}`
  if (names.includes(ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name)) return ''
  const more = names.length > maxSuggestions ? ', …' : ''
  const suggested = names.slice(0, maxSuggestions).join(', ')
  return `: the log has no such object; of kind ${ref.kind} it has ${suggested}${more}`
}
