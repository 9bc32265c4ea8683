/** Bytes that all replicas share, kept in a Secret that the first replica creates. */
import type { KubeClient, KubeObject } from './client.ts'
import { KubeError } from './error.ts'
import { type OwnerReference, ownedBy } from './install-owners.ts'
import { objectPath } from './paths.ts'

interface SharedSecret {
  readonly namespace: string
  readonly name: string
  readonly key: string
  readonly owner?: OwnerReference | undefined
}

/**
 * Returns the value in the Secret. If the Secret does not exist, it is created with the result of
 * `make`. If several replicas start at once, all get the value of the first one.
 * @throws KubeError if the Secret may not be read or created, or has no such entry
 */
export async function readSharedSecret(
  client: KubeClient,
  { namespace, name, key, owner }: SharedSecret,
  make: () => Uint8Array,
): Promise<Uint8Array> {
  const kind = { group: '', version: 'v1', plural: 'secrets' }
  const path = objectPath(kind, namespace, name)
  const read = async () => entryOf(await client.get(path), key)
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof KubeError) || !error.isNotFound) throw error
  }
  const value = Buffer.from(make())
  try {
    await client.create(`api/v1/namespaces/${namespace}/secrets`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name,
        namespace,
        labels: { 'app.kubernetes.io/managed-by': 'sluice' },
        ...ownedBy(owner),
      },
      type: 'Opaque',
      data: { [key]: value.toString('base64') },
    })
    return value
  } catch (error) {
    if (error instanceof KubeError && error.isConflict) return read()
    throw error
  }
}

function entryOf({ data, metadata }: KubeObject, key: string): Uint8Array {
  const text = (data as Record<string, string> | undefined)?.[key]
  if (text === undefined) {
    throw new KubeError(0, 'Invalid', `Secret ${metadata.namespace}/${metadata.name} has no ${key}`)
  }
  return Buffer.from(text, 'base64')
}
