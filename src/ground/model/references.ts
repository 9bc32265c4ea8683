/**
 * What a policy can learn about the objects that it refers to when it is compiled. For a Secret that
 * is only metadata: the control plane makes its decisions without the values of Secrets.
 */
import type { DirectTarget, SecretRef } from './resources.ts'

/** Looks up objects in the namespace of the object that refers to them. Every lookup is recorded. */
export interface References {
  /** Returns undefined if the Secret does not exist. */
  secret(name: string): ReferencedSecret | undefined
  /** Secrets that have all of these labels, sorted by name. */
  secretsWith(labels: Readonly<Record<string, string>>): readonly ReferencedSecret[]
  /** Returns undefined if the ConfigMap does not exist. */
  configMap(name: string): ReferencedConfigMap | undefined
  /** ConfigMaps that have all of these labels, sorted by name. */
  configMapsWith(labels: Readonly<Record<string, string>>): readonly ReferencedConfigMap[]
  /**
   * Entries of API keys in the event log, by their names. Undefined if they are unknown, because only manifests are
   * read.
   */
  dynamicApiKeys(): ReadonlyMap<string, string> | undefined
  /** The target of requests to a backend, or the reason why the reference cannot be resolved. */
  backend(reference: BackendReference): DirectTarget | string
  /** Requests that a key set is fetched regularly. Returns a text if the reference cannot be resolved. */
  keySet(remote: RemoteKeySet): FetchedKeySet | string
  /**
   * Requests that an OpenID provider is checked regularly. Returns what the last check has found; undefined if it can
   * be used, or was not checked yet.
   */
  issuerProblem(issuer: RemoteIssuer): string | undefined
}

/** The target of a reference that a policy calls, or the reason why it cannot be called. */
export function calledBackend(
  references: References,
  reference: BackendReference,
): Exclude<DirectTarget, { readonly type: 'invalid' }> | string {
  const target = references.backend(reference)
  return typeof target === 'string' || target.type !== 'invalid' ? target : target.message
}

/** A message that a Secret does not have the entry `key`, with the entries that it has. */
export function missingEntry({ label, entries }: ReferencedSecret, key: string): string {
  const names = Object.keys(entries).sort().join(', ')
  return `Secret ${label} has no entry ${key}${names === '' ? '' : `, only ${names}`}`
}

export interface BackendReference {
  readonly group?: string
  readonly kind?: string
  readonly namespace?: string
  readonly name: string
  readonly port?: number
}

/** A JSON Web Key Set that a backend serves. */
export interface RemoteKeySet {
  readonly backendRef: BackendReference
  /** Path relative to the root of the backend. */
  readonly path: string
  /** Milliseconds after which the key set is fetched again. */
  readonly cacheMs: number
}

/** An OpenID provider. The fields are those of IssuerRequest. */
export interface RemoteIssuer {
  readonly issuer: string
  readonly jwksURI?: string | undefined
  readonly isDiscovered: boolean
  readonly backendRef?: BackendReference | undefined
}

export interface FetchedKeySet {
  /** Identifies the key set in events and messages. */
  readonly uri: string
  /** The last fetched key set (RFC 7517) with its public members; undefined before the first fetch. */
  readonly keySet: unknown
  /** Whether nothing fetches key sets here, so that this one is only known when a gateway runs. */
  readonly isPending?: boolean
}

export interface ReferencedConfigMap {
  /** `namespace/name`, for messages. */
  readonly label: string
  /** Names of the entries of `data` and `binaryData`. */
  readonly names: readonly string[]
  /** Text of an entry of `data`, or of `binaryData` if it is UTF-8; undefined if there is no such entry. */
  entry(key: string): string | undefined
}

export interface ReferencedSecret {
  /** `namespace/name`, for messages. */
  readonly label: string
  readonly type: string
  /** Metadata of the entries, by their names in `data`. */
  readonly entries: Readonly<Record<string, SecretEntry>>
  /** The reference that is sent in place of an entry's value; undefined if there is no such entry. */
  ref(key: string): SecretRef | undefined
}

/** The metadata of one entry of a Secret, as the event log records it. */
interface SecretEntry {
  /** Keyed digest of the value. */
  readonly digest: string
  readonly isEmpty?: boolean
  /** The PEM certificates in their order; omitted if the entry has none. */
  readonly certificates?: readonly { readonly isValid: boolean }[]
  /** Set if the entry is a PEM private key. `type` is `unreadable` if it cannot be parsed. */
  readonly privateKey?: { readonly type: string; readonly pairsWith: readonly string[] }
  readonly htpasswd?: readonly { readonly line: number; readonly hash: string }[]
  /** `plain` or `json` if the entry can be used as an API key, otherwise the reason why it cannot. */
  readonly apiKey?: string
}
