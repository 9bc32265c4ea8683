/**
 * What a policy may learn of the objects that it refers to, when it is compiled. Of a Secret that
 * is facts only: values never reach the control plane's decisions.
 */
import type { SecretRef } from './resources.ts'

/** Looks objects up in the namespace of the object that refers to them; every look is remembered. */
export interface References {
  /** Undefined where there is no such Secret. */
  secret(name: string): ReferencedSecret | undefined
  /** Secrets that have all of these labels, by name. */
  secretsWith(labels: Readonly<Record<string, string>>): readonly ReferencedSecret[]
  /** Undefined where there is no such ConfigMap. */
  configMap(name: string): ReferencedConfigMap | undefined
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
export interface SecretEntry {
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
