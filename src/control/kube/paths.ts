/** The parts of the API path of a kind. */
export interface ApiPath {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
}

const base = ({ group, version }: ApiPath) =>
  group === '' ? `api/${version}` : `apis/${group}/${version}`

/** Path of all objects of a kind, or of those in one namespace. */
export function collectionPath(kind: ApiPath, namespace = ''): string {
  const within = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `${base(kind)}${within}/${kind.plural}`
}

/** Path of one object; `namespace` is empty for cluster-scoped objects. */
export function objectPath(kind: ApiPath, namespace: string, name: string): string {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`
}
