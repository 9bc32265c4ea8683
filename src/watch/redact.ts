import type { DigestKey } from './digest-key.ts'
import { secretFacts } from './facts.ts'

/** An object as JSON has it. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Takes a secret value out of the object, by its digest; values are kept in memory only. */
export type SecretSink = (digest: string, value: Uint8Array) => void

/**
 * Which string fields of a kind are secret, as paths: fields by dot, `[]` for every item of a list,
 * `*` for every field of an object, and `**` in front for any depth.
 */
export type SecretPaths = (kind: string) => readonly string[]

export interface RedactionOptions {
  readonly digestKey: DigestKey
  readonly secretPaths: SecretPaths
  readonly keepSecret?: SecretSink
}

/** The inline secrets that the interface has; a schema that marks its own takes the place of this. */
export const knownSecretPaths: SecretPaths = (kind) => secretPathsByKind[kind] ?? []

const secretPathsByKind: Readonly<Record<string, readonly string[]>> = {
  GatewayPolicy: ['**.auth.key', '**.basicAuthentication.users[]'],
  GatewayBackend: ['**.auth.key'],
}

/** What stands in place of an inline secret; still a string, so that the object keeps its shape. */
export function secretPlaceholder(digest: string): string {
  return `secret:${digest}`
}

/** Metadata that stands beside the object in the event, or that says nothing about it. */
const droppedMetadata = ['uid', 'resourceVersion', 'generation', 'managedFields', 'selfLink']
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * The form of an object that may enter the log: no status, no identity fields, no managedFields, no
 * last-applied copy of itself, and no secret value. A Secret has `facts` in place of its data; an
 * inline secret becomes a placeholder with its digest.
 */
export function redact(object: JsonObject, options: RedactionOptions): JsonObject {
  const { status: _, metadata, ...rest } = object
  const clean = { ...rest, metadata: redactMetadata(metadata) }
  if (object.kind === 'Secret') return redactSecret(clean, options)
  const kind = String(object.kind)
  const patterns = options.secretPaths(kind).map((path) => path.replaceAll('[]', '.[]').split('.'))
  if (patterns.length === 0) return clean
  return redactFields(clean, [], patterns, options) as JsonObject
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
  const { data, stringData, ...rest } = object
  const entries = secretEntries(object)
  for (const value of entries.values()) {
    options.keepSecret?.(options.digestKey.digest(value), value)
  }
  return { ...rest, facts: secretFacts(entries, options.digestKey) }
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

function redactFields(
  value: unknown,
  path: readonly string[],
  patterns: readonly (readonly string[])[],
  options: RedactionOptions,
): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => redactFields(item, [...path, '[]'], patterns, options))
  }
  if (value !== null && typeof value === 'object') {
    const fields = Object.entries(value).map(([field, member]) => [
      field,
      redactFields(member, [...path, field], patterns, options),
    ])
    return Object.fromEntries(fields)
  }
  if (typeof value !== 'string' || !patterns.some((pattern) => matches(pattern, path))) return value
  const digest = options.digestKey.digest(value)
  options.keepSecret?.(digest, Buffer.from(value))
  return secretPlaceholder(digest)
}

function matches(pattern: readonly string[], path: readonly string[]): boolean {
  const isDeep = pattern[0] === '**'
  const steps = isDeep ? pattern.slice(1) : pattern
  if (isDeep ? path.length < steps.length : path.length !== steps.length) return false
  const tail = path.slice(path.length - steps.length)
  return steps.every((step, index) => step === '*' || step === tail[index])
}
