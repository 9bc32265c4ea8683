/** Resolves what policies refer to: metadata of Secrets, contents of ConfigMaps, and key sets. */
import type { SecretMetadata } from '../../../../events/index.ts'
import { type DynamicKeys, dynamicKeysInput } from '../../../ground/model/dynamic-keys.ts'
import {
  type FetchedKeys,
  type KeySetRequest,
  keySetInput,
  keySetsPendingInput,
  metadataURL,
} from '../../../ground/model/key-sets.ts'
import { matchesSelector } from '../../../ground/model/label-selector.ts'
import type { ObjectName } from '../../../ground/model/names.ts'
import type {
  BackendReference,
  FetchedKeySet,
  ReferencedConfigMap,
  ReferencedSecret,
  References,
  RemoteIssuer,
  RemoteKeySet,
} from '../../../ground/model/references.ts'
import type { DirectTarget } from '../../../ground/model/resources.ts'
import { pathWithQuery } from '../../../ground/schema/host.ts'
import { findRouteKind, type ObjectOf } from '../../api/kinds.ts'
import { findBackendKind } from '../backend-kind.ts'
import { ownMessages } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import type { MissingReferences } from './missing-references.ts'
import { policyReferrer, type Referrer, resolveBackend } from './references.ts'

/**
 * Resolves references of objects in `namespace` while policies are compiled. `kind` is the kind of the
 * referring object, which ReferenceGrants name; kinds other than routes count as GatewayPolicy.
 */
export function referencesFrom(
  namespace: string,
  read: Reader,
  kind: string = 'GatewayPolicy',
  missing?: MissingReferences,
): References {
  const policy = policyReferrer(namespace)
  const backendFor = (from: Referrer) => (reference: BackendReference) => {
    const { target, failure } = resolveBackend(reference, from, read)
    if (failure !== undefined && ownMessages(failure).length === 0) missing?.add(reference)
    return failure?.message ?? target
  }
  const labelled =
    <Found>(
      of: string,
      find: (namespace: string, name: string, read: Reader) => Found | undefined,
    ) =>
    (matchLabels: Readonly<Record<string, string>>): readonly Found[] => {
      const found = read
        .index('labelled', `${of}/${namespace}`)
        .filter(({ object }) => matchesSelector({ matchLabels }, object?.metadata.labels ?? {}))
        .flatMap(({ ref }) => find(namespace, ref.name, read) ?? [])
      if (found.length === 0) missing?.add(matchLabels)
      return found
    }
  return {
    secret: (name) => {
      const secret = referencedSecret(namespace, name, read)
      if (secret === undefined) missing?.add(name)
      return secret
    },
    secretsWith: labelled('Secret', referencedSecret),
    configMap: (name) => {
      const configMap = referencedConfigMap(namespace, name, read)
      if (configMap === undefined) missing?.add(name)
      return configMap
    },
    configMapsWith: labelled('ConfigMap', referencedConfigMap),
    dynamicApiKeys: () =>
      read.input<DynamicKeys>(dynamicKeysInput(namespace)) ??
      (read.input(keySetsPendingInput) === true ? undefined : new Map()),
    backend: backendFor(findRouteKind(kind) ? { kind, namespace } : policy),
    keySet: (remote) => referToKeySet(remote, backendFor(policy), read),
    issuerProblem: (remote) => referToIssuer(remote, backendFor(policy), read),
  }
}

function referencedSecret(
  namespace: string,
  name: string,
  read: Reader,
): ReferencedSecret | undefined {
  const secret = read.object('Secret', namespace, name)?.object
  if (secret === undefined) return undefined
  const { entries } = secret.facts as SecretMetadata
  return {
    label: `${namespace}/${name}`,
    type: typeof secret.type === 'string' ? secret.type : 'Opaque',
    entries,
    ref: (key) => {
      const entry = Object.hasOwn(entries, key) ? entries[key] : undefined
      return entry && { namespace, name, key, digest: entry.digest }
    },
  }
}

function referencedConfigMap(
  namespace: string,
  name: string,
  read: Reader,
): ReferencedConfigMap | undefined {
  const configMap = read.object('ConfigMap', namespace, name)?.object
  if (configMap === undefined) return undefined
  const { data = {}, binaryData = {} } = configMap as ObjectOf<'ConfigMap'>
  return {
    label: `${namespace}/${name}`,
    names: Object.keys({ ...data, ...binaryData }),
    entry: (key) => {
      if (Object.hasOwn(data, key)) return data[key]
      return Object.hasOwn(binaryData, key) ? textOf(binaryData[key] ?? '') : undefined
    },
  }
}

function textOf(base64: string): string | undefined {
  const bytes = Uint8Array.from(atob(base64.replaceAll(/\s/g, '')), (c) => c.charCodeAt(0))
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const pathForm = new RegExp(`^[${pathWithQuery}]*$`)

/** Requests a key set, or returns the reason why it cannot be requested. */
function referToKeySet(
  { backendRef, path: given, cacheMs }: RemoteKeySet,
  find: (reference: BackendReference) => DirectTarget | string,
  read: Reader,
): FetchedKeySet | string {
  if (!pathForm.test(given)) return 'jwksPath holds characters that no path can have'
  const path = given.startsWith('/') ? given : `/${given}`
  const found = calledAddress(find(backendRef), read)
  if (typeof found === 'string') return found
  const uri = uriOf(found.target, found.address, path)
  read.requestKeySet({ uri, ...found, path, cacheMs })
  const keySet = read.input<FetchedKeys>(keySetInput(uri))?.keySet
  if (keySet === undefined && read.input(keySetsPendingInput)) {
    return { uri, keySet, isPending: true }
  }
  return { uri, keySet }
}

/** How often issuers are checked, in milliseconds. */
const issuerMs = 300_000

/** Requests a check, and returns what the last one has found. */
function referToIssuer(
  { backendRef, issuer, jwksURI, isDiscovered }: RemoteIssuer,
  find: (reference: BackendReference) => DirectTarget | string,
  read: Reader,
): string | undefined {
  const backend = backendRef && calledAddress(find(backendRef), read)
  // The policy reports the reference itself. Backends that only proxies can call are not checked.
  if (typeof backend === 'string') return undefined
  const checked = isDiscovered ? metadataURL(issuer) : (jwksURI ?? issuer)
  const through = backend && `#${targetText(backend.target)}`
  const uri = `${checked}${through ?? ''}`
  read.requestKeySet({ uri, issuer, jwksURI, isDiscovered, backend, cacheMs: issuerMs })
  const found = read.input<FetchedKeys>(keySetInput(uri))?.keySet.problem
  return typeof found === 'string' ? found : undefined
}

const targetText = ({ type, namespace, name }: KeySetRequest['target']): string =>
  `${type === 'service' ? 'Service' : 'GatewayBackend'}/${namespace}/${name}`

/** The URI includes the backend: backends with the same address may trust different authorities. */
function uriOf(
  target: KeySetRequest['target'],
  address: KeySetRequest['address'],
  path: string,
): string {
  const { namespace, name } = target
  if (target.type === 'service') return `//${name}.${namespace}.svc:${target.port}${path}`
  return `//${address?.host}:${address?.port}${path}#GatewayBackend/${namespace}/${name}`
}

/** Where the control plane itself calls a backend, or why it cannot. */
export function calledAddress(
  target: DirectTarget | string,
  read: Reader,
): Pick<KeySetRequest, 'target' | 'address'> | string {
  if (typeof target === 'string') return target
  if (target.type === 'invalid') return target.message
  if (target.type === 'service') return { target }
  const found = staticAddress(target, read)
  return typeof found === 'string' ? found : { target, ...found }
}

function staticAddress(
  { namespace, name }: ObjectName,
  read: Reader,
): Pick<KeySetRequest, 'address'> | string {
  const kind = findBackendKind({ namespace, name }, read)
  const address = kind?.definition.address?.(kind.spec)
  if (address !== undefined) return { address }
  return `GatewayBackend ${namespace}/${name} is not static; the control plane calls Services and static backends only`
}
