/** Where objects are on the API server. */
export interface ApiPath {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
}

const base = ({ group, version }: ApiPath) =>
  group === '' ? `api/${version}` : `apis/${group}/${version}`

/** All objects of a kind, or those of one namespace. */
export function collectionPath(kind: ApiPath, namespace = ''): string {
  const within = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `${base(kind)}${within}/${kind.plural}`
}

/** One object; the namespace of a cluster-scoped one is empty. */
export function objectPath(kind: ApiPath, namespace: string, name: string): string {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`
}
