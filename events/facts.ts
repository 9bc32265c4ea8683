/**
 * What an event says of a Secret in place of its values: enough to decide every condition, and not
 * enough to learn a value. Stands in `object.facts` of a ResourceApplied about a Secret.
 */
export interface SecretFacts {
  /** By the name of the entry in `data`. */
  readonly entries: Readonly<Record<string, SecretEntryFacts>>
}

export interface SecretEntryFacts {
  /** HMAC-SHA256 under the digest key: equal values have equal digests, and nothing else shows. */
  readonly digest: string
  readonly isEmpty: boolean
  /** Of each PEM certificate, in order; absent where the entry holds none. */
  readonly certificates?: readonly CertificateFacts[]
  /** Present where the entry is a private key in PEM. */
  readonly privateKey?: PrivateKeyFacts
  /** Present for the entry `.htaccess`: one verdict for each line that is not blank or a comment. */
  readonly htpasswd?: readonly HtpasswdLineFacts[]
  readonly apiKey: ApiKeyVerdict
}

export type CertificateFacts =
  | {
      readonly isValid: true
      /** RFC 3339, UTC. */
      readonly notBefore: string
      readonly notAfter: string
      /** Subject alternative names: DNS names and IP addresses. */
      readonly names: readonly string[]
      readonly isAuthority: boolean
    }
  | { readonly isValid: false }

export interface PrivateKeyFacts {
  /** `rsa`, `ec`, `ed25519` and so on; `unreadable` where it is damaged or encrypted. */
  readonly type: string
  /** Entries whose first certificate has the public half. */
  readonly pairsWith: readonly string[]
}

/** Line numbers begin at 1. */
export interface HtpasswdLineFacts {
  readonly line: number
  readonly hash: 'bcrypt' | 'apr1' | 'sha1' | 'crypt' | 'unsupported' | 'malformed'
}

/** Can the entry serve as an API key: as plain text, or as JSON with a `key`? */
export type ApiKeyVerdict =
  | 'plain'
  | 'json'
  | 'empty'
  | 'not-json'
  | 'json-without-key'
  | 'not-text'

/** What an event says of a Pod in place of spec and status. Stands in `object.facts`. */
export interface PodFacts {
  /** Its first address; absent before it has one. */
  readonly address?: string
  /** Does it take new requests? Not once it is going away. */
  readonly ready: boolean
}
