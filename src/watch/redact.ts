import type { JsonObject } from '../base/json-object.ts'
import type { DigestKey } from './digest-key.ts'
import { secretFacts } from './facts.ts'
import { recordPod } from './pod-facts.ts'

/** Takes a secret value out of the object, by its digest; values are kept in memory only. */
export type SecretSink = (digest: string, value: Uint8Array) => void

/**
 * The paths of a kind's fields that are secret: fields by dot, `[]` for every item of a list, `{}`
 * for every value of a map, such as `spec.providers[].auth.key`. All that is below counts too.
 */
export type SecretPaths = (kind: string) => readonly string[]

export interface RedactionOptions {
  readonly digestKey: DigestKey
  readonly secretPaths: SecretPaths
  readonly keepSecret?: SecretSink
}

/** What stands in place of an inline secret; still a string, so that the object keeps its shape. */
export function secretPlaceholder(digest: string): string {
  return `secret:${digest}`
}

/** Metadata that stands beside the object in the event, or that says nothing about it. */
const droppedMetadata = ['uid', 'resourceVersion', 'generation', 'managedFields', 'selfLink']
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * The form of an object that may enter the log: no status (but the addresses that a Service was
 * given, which others decide and we only read), no identity fields, no managedFields, no
 * last-applied copy of itself, and no secret value. A Secret has `facts` in place of its data, a Pod
 * in place of everything but its labels; an inline secret becomes a placeholder with its digest.
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
  return paths.reduce<JsonObject>((part, path) => hideAt(part, path, hide) as JsonObject, clean)
}

function givenAddresses({ kind }: JsonObject, status: unknown): JsonObject {
  if (kind !== 'Service' || typeof status !== 'object' || status === null) return {}
  const { loadBalancer } = status as JsonObject
  const { ingress } = (loadBalancer ?? {}) as JsonObject
  return Array.isArray(ingress) && ingress.length > 0
    ? { status: { loadBalancer: { ingress } } }
    : {}
}

const parsed = new WeakMap<SecretPaths, Map<string, readonly (readonly string[])[]>>()

/** The steps of every secret path of a kind; found once, since a schema is large. */
function parsedPaths(secretPaths: SecretPaths, kind: string): readonly (readonly string[])[] {
  const byKind = parsed.get(secretPaths) ?? new Map<string, readonly (readonly string[])[]>()
  parsed.set(secretPaths, byKind)
  const known = byKind.get(kind)
  if (known !== undefined) return known
  const paths = secretPaths(kind).map((path) => path.match(/\[\]|\{\}|[^.[\]{}]+/g) ?? [])
  byKind.set(kind, paths)
  return paths
}

/** A copy in which everything at the path is hidden; the same value where there is nothing. */
function hideAt(value: unknown, path: readonly string[], hide: (text: string) => string): unknown {
  const [step, ...rest] = path
  if (typeof value === 'string') return step === undefined ? hide(value) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    if (step !== undefined && step !== '[]') return value
    return value.map((item) => hideAt(item, rest, hide))
  }
  const isEvery = step === undefined || step === '{}'
  const fields = Object.entries(value).map(([field, member]) =>
    isEvery || field === step ? [field, hideAt(member, rest, hide)] : [field, member],
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
  // Named one by one: a misspelt `data` is a field that is not known, and holds values all the same.
  const facts = secretFacts(entries, options.digestKey)
  return { apiVersion, kind, metadata, type, immutable, facts }
}

/** The decoded entries of a Secret; `stringData` wins over `data`. */
function secretEntries({ data, stringData }: JsonObject): ReadonlyMap<string, Uint8Array> {
  const encoded = Object.entries((data ?? {}) as JsonObject).map(
    ([name, value]) => [name, Buffer.from(String(value ?? ''), 'base64')] as const,
  )
  const plain = Object.entries((stringData ?? {}) as JsonObject).map(
    ([name, value]) => [name, Buffer.from(String(value ?? ''))] as const,
  )
  return new Map([...encoded, ...plain])
}
