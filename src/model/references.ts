/**
 * What a policy may learn of the objects that it refers to, when it is compiled. Of a Secret that
 * is facts only: values never reach the control plane's decisions.
 */
import type { DirectTarget, SecretRef } from './resources.ts'

/** Looks objects up in the namespace of the object that refers to them; every look is remembered. */
export interface References {
  /** Undefined where there is no such Secret. */
  secret(name: string): ReferencedSecret | undefined
  /** Secrets that have all of these labels, by name. */
  secretsWith(labels: Readonly<Record<string, string>>): readonly ReferencedSecret[]
  /** Undefined where there is no such ConfigMap. */
  configMap(name: string): ReferencedConfigMap | undefined
  /** Where requests to a backend go; a message where the reference leads nowhere. */
  backend(reference: BackendReference): DirectTarget | string
  /** Asks for a key set to be fetched and kept; a message where the reference leads nowhere. */
  keySet(remote: RemoteKeySet): FetchedKeySet | string
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
  /** Relative to the root of the backend. */
  readonly path: string
  /** Milliseconds after which it is fetched again. */
  readonly cacheMs: number
}

export interface FetchedKeySet {
  /** What it is called in events and messages. */
  readonly uri: string
  /** As last fetched (RFC 7517, public members only); undefined before the first time. */
  readonly keySet: unknown
  /** It will be fetched when a gateway runs. */
  readonly isPending?: boolean
}

export interface ReferencedConfigMap {
  /** `namespace/name`, for messages. */
  readonly label: string
  /** Text of an entry of `data`, or of `binaryData` where that is UTF-8; undefined where there is none. */
  entry(key: string): string | undefined
}

export interface ReferencedSecret {
  /** `namespace/name`, for messages. */
  readonly label: string
  readonly type: string
  /** By the name of the entry in `data`. */
  readonly entries: Readonly<Record<string, SecretEntry>>
  /** The reference by which the value of an entry travels; undefined where there is no such entry. */
  ref(key: string): SecretRef | undefined
}

/** What the log knows of one entry of a Secret. */
interface SecretEntry {
  /** Keyed digest of the value. */
  readonly digest: string
  readonly isEmpty?: boolean
  /** Of each PEM certificate, in order; absent where the entry holds none. */
  readonly certificates?: readonly { readonly isValid: boolean }[]
  /** Present where the entry is a private key in PEM; `type` is `unreadable` where it is damaged. */
  readonly privateKey?: { readonly type: string; readonly pairsWith: readonly string[] }
  readonly htpasswd?: readonly { readonly line: number; readonly hash: string }[]
  /** Can it serve as an API key? `plain` and `json` can; else it says why not. */
  readonly apiKey?: string
}
