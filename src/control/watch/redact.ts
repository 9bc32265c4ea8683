import type { PodState } from '../../../events/index.ts'
import { isObject, type JsonObject } from '../../ground/base/json-object.ts'
import {
  isCredentialHeader,
  replaceLiterals,
  type SecretContent,
  secretPlaceholder,
} from '../../ground/secrets/placeholder.ts'
import type { DigestKey } from './digest-key.ts'
import { secretMetadata } from './secret-metadata.ts'

/** Receives a secret value with its digest; values are kept in memory only. */
export type SecretSink = (digest: string, value: Uint8Array) => void

/**
 * A secret field of a kind. In `path`, such as `spec.providers[].auth.key`, `[]` means every item of a list, and
 * `{}` every value of a map. Every text below the path has the same content.
 */
interface SecretPath {
  readonly path: string
  readonly holds: SecretContent
}

type SecretPaths = (kind: string) => readonly SecretPath[]

export interface RedactionOptions {
  readonly digestKey: DigestKey
  readonly secretPaths: SecretPaths
  readonly keepSecret?: SecretSink
}

/** Metadata that is recorded elsewhere in the event, or not at all. */
const droppedMetadata = ['uid', 'resourceVersion', 'generation', 'managedFields', 'selfLink']
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * Returns the form of an object that may enter the log: without status (except the addresses of a Service),
 * identity fields, managedFields, the last-applied copy of itself, and secret values. `facts` replace the
 * data of a Secret, and everything but the name, labels and age of a Pod. An inline secret becomes a
 * placeholder with its digest.
 */
export function redact(object: JsonObject, options: RedactionOptions): JsonObject {
  if (object.kind === 'Pod') return recordPod(object)
  const { status, metadata, ...rest } = object
  const clean = { ...rest, metadata: redactMetadata(metadata), ...givenAddresses(object, status) }
  if (object.kind === 'Secret') return redactSecret(clean, options)
  const hide = (text: string): string => {
    const digest = options.digestKey.digest(text)
    options.keepSecret?.(digest, Buffer.from(text))
    return secretPlaceholder(digest)
  }
  const paths = parsedPaths(options.secretPaths, String(object.kind))
  return paths.reduce<JsonObject>(
    (part, { steps, holds }) => hideAt(part, steps, hiding[holds](hide)) as JsonObject,
    clean,
  )
}

/** Returns the text to record. `header` is the name of the header that the text belongs to, if any. */
type Hide = (text: string, header: unknown) => string

const hiding: Readonly<Record<SecretContent, (hide: (text: string) => string) => Hide>> = {
  value: (hide) => hide,
  header: (hide) => (text, name) => (isCredentialHeader(name) ? hide(text) : text),
  // A literal is hidden with its quotes, so that it need not be parsed.
  headerExpression: (hide) => (text, name) =>
    isCredentialHeader(name) ? replaceLiterals(text, (literal) => `"${hide(literal)}"`) : text,
}

/** Reduces a Pod to name, labels, age, address and readiness. Most changes of a Pod concern none of these. */
function recordPod({ apiVersion, kind, metadata, status }: JsonObject): JsonObject {
  const { name, namespace, labels, creationTimestamp, deletionTimestamp } = (metadata ??
    {}) as JsonObject
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace,
      ...(labels !== undefined && { labels }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    },
    facts: podState(isObject(status) ? status : {}, deletionTimestamp !== undefined),
  }
}

function podState({ phase, podIP, conditions }: JsonObject, isLeaving: boolean): PodState {
  const isReady =
    Array.isArray(conditions) &&
    conditions.some((one) => isObject(one) && one.type === 'Ready' && one.status === 'True')
  const isServing = isReady && phase !== 'Succeeded' && phase !== 'Failed'
  const address = typeof podIP === 'string' && podIP !== '' ? { address: podIP } : {}
  if (isLeaving && isServing) return { ...address, ready: false, serving: true }
  return { ...address, ready: isServing && !isLeaving }
}

function givenAddresses({ kind }: JsonObject, status: unknown): JsonObject {
  if (kind !== 'Service' || typeof status !== 'object' || status === null) return {}
  const { loadBalancer } = status as JsonObject
  const { ingress } = (loadBalancer ?? {}) as JsonObject
  return Array.isArray(ingress) && ingress.length > 0
    ? { status: { loadBalancer: { ingress } } }
    : {}
}

interface ParsedPath extends Pick<SecretPath, 'holds'> {
  readonly steps: readonly string[]
}

const parsed = new WeakMap<SecretPaths, Map<string, readonly ParsedPath[]>>()

/** Returns the steps of every secret path of a kind. They are cached, since schemas are large. */
function parsedPaths(secretPaths: SecretPaths, kind: string): readonly ParsedPath[] {
  const byKind = parsed.get(secretPaths) ?? new Map<string, readonly ParsedPath[]>()
  parsed.set(secretPaths, byKind)
  const known = byKind.get(kind)
  if (known !== undefined) return known
  const paths = secretPaths(kind).map(({ path, holds }) => ({
    steps: path.match(/\[\]|\{\}|[^.[\]{}]+/g) ?? [],
    holds,
  }))
  byKind.set(kind, paths)
  return paths
}

/** Returns a copy in which every string at and below the path is hidden. */
function hideAt(value: unknown, path: readonly string[], hide: Hide, header?: unknown): unknown {
  const [step, ...rest] = path
  if (typeof value === 'string') return step === undefined ? hide(value, header) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    if (step !== undefined && step !== '[]') return value
    return value.map((item) => hideAt(item, rest, hide, header))
  }
  const { name } = value as { readonly name?: unknown }
  const isEvery = step === undefined || step === '{}'
  const fields = Object.entries(value).map(([field, member]) =>
    isEvery || field === step
      ? [field, hideAt(member, rest, hide, step === '{}' ? field : name)]
      : [field, member],
  )
  return Object.fromEntries(fields)
}

function redactMetadata(metadata: unknown): JsonObject {
  const clean = Object.entries((metadata ?? {}) as JsonObject).flatMap(([field, value]) => {
    if (droppedMetadata.includes(field)) return []
    if (field !== 'annotations') return [[field, value] as const]
    const { [lastApplied]: _, ...annotations } = (value ?? {}) as JsonObject
    return Object.keys(annotations).length === 0 ? [] : [[field, annotations] as const]
  })
  return Object.fromEntries(clean)
}

function redactSecret(object: JsonObject, options: RedactionOptions): JsonObject {
  const { apiVersion, kind, metadata, type, immutable } = object
  const entries = secretEntries(object)
  for (const value of entries.values()) {
    options.keepSecret?.(options.digestKey.digest(value), value)
  }
  // Only known fields are copied, since a misspelt `data` has secret values too.
  const facts = secretMetadata(entries, options.digestKey)
  return { apiVersion, kind, metadata, type, immutable, facts }
}

/** Returns the decoded entries of a Secret; `stringData` takes precedence over `data`. */
function secretEntries({ data, stringData }: JsonObject): ReadonlyMap<string, Uint8Array> {
  const encoded = Object.entries((data ?? {}) as JsonObject).map(
    ([name, value]) => [name, Buffer.from(String(value ?? ''), 'base64')] as const,
  )
  const plain = Object.entries((stringData ?? {}) as JsonObject).map(
    ([name, value]) => [name, Buffer.from(String(value ?? ''))] as const,
  )
  return new Map([...encoded, ...plain])
}
