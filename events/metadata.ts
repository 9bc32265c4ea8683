/**
 * What an event contains in place of the values of a Secret: enough to decide all conditions, but no
 * value can be derived from it. It is in `object.facts` of a ResourceApplied event about a Secret.
 */
export interface SecretMetadata {
  /** Metadata by the name of the entry in `data`. */
  readonly entries: Readonly<Record<string, SecretEntryMetadata>>
}

export interface SecretEntryMetadata {
  /** HMAC-SHA256 under the digest key: it reveals which values are equal, and nothing else. */
  readonly digest: string
  readonly isEmpty: boolean
  /** Metadata of the PEM certificates in their order; omitted if the entry has none. */
  readonly certificates?: readonly CertificateMetadata[]
  /** Set if the entry is a private key in PEM. */
  readonly privateKey?: PrivateKeyMetadata
  /** Set for the entry `.htaccess`: one result for each line that is not blank or a comment. */
  readonly htpasswd?: readonly HtpasswdLineMetadata[]
  readonly apiKey: ApiKeyVerdict
}

export type CertificateMetadata =
  | {
      readonly isValid: true
      /** RFC 3339 in UTC. */
      readonly notBefore: string
      readonly notAfter: string
      /** Subject alternative names: DNS names and IP addresses. */
      readonly names: readonly string[]
      readonly isAuthority: boolean
    }
  | { readonly isValid: false }

export interface PrivateKeyMetadata {
  /** `rsa`, `ec`, `ed25519` and so on; `unreadable` if the key is damaged or encrypted. */
  readonly type: string
  /** Entries whose first certificate contains the public key that belongs to this private key. */
  readonly pairsWith: readonly string[]
}

/** Line numbers start at 1. */
export interface HtpasswdLineMetadata {
  readonly line: number
  readonly hash: 'bcrypt' | 'apr1' | 'sha1' | 'crypt' | 'unsupported' | 'malformed'
}

/** `plain` and `json` (an object with a `key` or `keyHash`) can be used as an API key; the others say why not. */
export type ApiKeyVerdict =
  | 'plain'
  | 'json'
  | 'empty'
  | 'not-text'
  | 'not-json'
  | 'json-without-key'
  | 'key-and-hash'
  | 'unknown-member'
  | 'malformed-hash'
  | 'malformed-previous'
  | 'malformed-expiry'
  | 'malformed-disabled'
  | 'malformed-models'
  | 'malformed-routes'
  | 'member-twice'

/** What an event contains in place of spec and status of a Pod, in `object.facts`. */
export interface PodState {
  /** The Pod's first IP address; omitted until it has one. */
  readonly address?: string
  /** True if the Pod accepts new requests; false once it is being deleted. */
  readonly ready: boolean
  /** Set if the Pod is being deleted but still passes its readiness probe. */
  readonly serving?: true
}
