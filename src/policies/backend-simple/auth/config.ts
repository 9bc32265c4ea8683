/** Version 1. Secrets stand in it by the digests of their values. */
export type BackendAuthConfig =
  /** Value of the Authorization header. */
  | { readonly type: 'value'; readonly digest: string }
  /** The token of the client, which a policy has verified and taken off. */
  | { readonly type: 'passthrough' }
  | {
      readonly type: 'aws'
      readonly accessKey: string
      readonly secretKey: string
      readonly sessionToken?: string
    }
