/** How commands read and print the names of objects. */
import type { Recorded } from '../log/index.ts'
import type { ObjectRef } from '../model/names.ts'
import { UsageError } from './output.ts'

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

/** Returns a hint that lists objects of the same kind in the log; empty if the log has the object. */
export function suggestObjects(ref: ObjectRef, events: readonly Recorded[]): string {
  const known = new Set<string>()
  for (const { event } of events) {
    const { kind, namespace, name } = event.data as Partial<ObjectRef>
    if (kind !== ref.kind || name === undefined) continue
    if (namespace === ref.namespace && name === ref.name) return ''
    known.add(namespace ? `${namespace}/${name}` : name)
  }
  if (known.size === 0) return `: the log has no ${ref.kind}`
  const names = [...known].sort()
  const more = names.length > maxSuggestions ? ', …' : ''
  const suggested = names.slice(0, maxSuggestions).join(', ')
  return `: the log has no such object; of kind ${ref.kind} it has ${suggested}${more}`
}
