/** A policy's reference to a key set that a backend serves. */
import { ownGroup } from '../../api/names.ts'
import {
  type FetchedKeys,
  type KeySetRequest,
  keySetFact,
  keySetsPendingFact,
} from '../../model/key-sets.ts'
import type { FetchedKeySet, RemoteKeySet } from '../../model/references.ts'
import { ownMessages } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { specOf } from '../specs.ts'
import type { MissingReferences } from './missing-references.ts'
import { resolveBackend } from './references.ts'

/** A path of a URI with its query (RFC 3986). */
const pathForm = /^[!$&-;=?-Z_a-z~%]*$/

/** Asks for the key set; a message where it cannot be asked for. */
export function referToKeySet(
  { backendRef, path: given, cacheMs }: RemoteKeySet,
  namespace: string,
  read: Reader,
  missing?: MissingReferences,
): FetchedKeySet | string {
  if (!pathForm.test(given)) return 'jwksPath holds characters that no path can have'
  const path = given.startsWith('/') ? given : `/${given}`
  const from = { group: ownGroup, kind: 'GatewayPolicy', namespace }
  const { target, failure } = resolveBackend(backendRef, from, read)
  if (target.type === 'invalid') {
    if (failure !== undefined && ownMessages(failure).length === 0) missing?.add(backendRef)
    return failure?.message ?? target.message
  }
  const found = target.type === 'service' ? {} : staticAddress(target, read)
  if (typeof found === 'string') return found
  const uri = uriOf(target, found.address, path)
  read.requestKeySet({ uri, target, ...found, path, cacheMs })
  if (read.fact(keySetsPendingFact)) return { uri, keySet: undefined, isPending: true }
  return { uri, keySet: read.fact<FetchedKeys>(keySetFact(uri))?.keySet }
}

/** Backends with one address may trust different authorities, so they share no keys. */
function uriOf(
  target: KeySetRequest['target'],
  address: KeySetRequest['address'],
  path: string,
): string {
  const { namespace, name } = target
  if (target.type === 'service') return `//${name}.${namespace}.svc:${target.port}${path}`
  return `//${address?.host}:${address?.port}${path}#GatewayBackend/${namespace}/${name}`
}

function staticAddress(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  read: Reader,
): Pick<KeySetRequest, 'address'> | string {
  const object = read.object('GatewayBackend', namespace, name)?.object
  const address = object && specOf<'GatewayBackend'>(object).static
  if (address !== undefined) return { address: { host: address.host, port: address.port } }
  return `GatewayBackend ${namespace}/${name} is not static; keys are fetched from Services and static backends only`
}
