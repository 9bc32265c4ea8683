/** How commands read and print the names of objects. */
import { nearest } from '../../../ground/base/suggest.ts'
import { type ObjectRef, objectKey, objectText } from '../../../ground/model/names.ts'
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

const nameOf = ({ namespace, name }: ObjectRef): string =>
  namespace === '' ? name : `${namespace}/${name}`

/**
 * Returns a hint for an object that is not known: the objects of its kind with the same name, or else all of
 * its kind. Empty if the object is among those that are known.
 */
export function suggestObjects(ref: ObjectRef, known: readonly ObjectRef[]): string {
  if (known.some((one) => objectKey(one) === objectKey(ref))) return ''
  const kinds = new Map(known.map(({ kind }) => [kind.toLowerCase(), kind]))
  const kind = kinds.get(ref.kind.toLowerCase()) ?? nearest(ref.kind, [...kinds.values()])
  if (kind === undefined) return `: there is no ${ref.kind}`
  const ofKind = known.filter((one) => one.kind === kind)
  const same = ofKind.filter(({ name }) => name === ref.name)
  if (same.length > 0) return `; did you mean ${listed(same.map(objectText), ' or ')}?`
  return `: there is no such object; of kind ${kind} there is ${listed(ofKind.map(nameOf), ', ')}`
}

function listed(names: readonly string[], separator: string): string {
  const more = names.length > maxSuggestions ? ', …' : ''
  return `${[...names].sort().slice(0, maxSuggestions).join(separator)}${more}`
}
