/** Objects that policies refer to: Secrets by their facts, ConfigMaps by their content. */
import type { SecretFacts } from '../../../events/index.ts'
import type { ObjectOf } from '../../api/kinds.ts'
import { ownGroup } from '../../api/names.ts'
import { matchesSelector } from '../../base/label-selector.ts'
import type { ReferencedConfigMap, ReferencedSecret, References } from '../../model/references.ts'
import { ownMessages } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { referToKeySet } from './key-set-reference.ts'
import type { MissingReferences } from './missing-references.ts'
import { resolveBackend } from './references.ts'

/**
 * References of an object of the namespace, which policies compile with. `kind` is its kind, which
 * grants name; whatever is no route refers as a policy does.
 */
export function referencesFrom(
  namespace: string,
  read: Reader,
  kind: string = 'GatewayPolicy',
  missing?: MissingReferences,
): References {
  return {
    secret: (name) => {
      const secret = referencedSecret(namespace, name, read)
      if (secret === undefined) missing?.add(name)
      return secret
    },
    secretsWith: (matchLabels) => {
      const secrets = read
        .index('labelled', `Secret/${namespace}`)
        .filter(({ object }) => matchesSelector({ matchLabels }, object?.metadata.labels ?? {}))
        .flatMap(({ ref }) => referencedSecret(namespace, ref.name, read) ?? [])
      if (secrets.length === 0) missing?.add(matchLabels)
      return secrets
    },
    configMap: (name) => {
      const configMap = referencedConfigMap(namespace, name, read)
      if (configMap === undefined) missing?.add(name)
      return configMap
    },
    backend: (reference) => {
      const from = kind.endsWith('Route')
        ? { kind, namespace }
        : { group: ownGroup, kind: 'GatewayPolicy', namespace }
      const { target, failure } = resolveBackend(reference, from, read)
      if (failure !== undefined && ownMessages(failure).length === 0) missing?.add(reference)
      return failure?.message ?? target
    },
    keySet: (remote) => referToKeySet(remote, namespace, read, missing),
  }
}

function referencedSecret(
  namespace: string,
  name: string,
  read: Reader,
): ReferencedSecret | undefined {
  const secret = read.object('Secret', namespace, name)?.object
  if (secret === undefined) return undefined
  const { entries } = secret.facts as SecretFacts
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
