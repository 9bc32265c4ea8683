/** Key sets that the control plane fetches for policies, and what it has fetched. */
import type { DirectTarget } from './resources.ts'

/** What is to be fetched and kept fresh. Plain data: the fold asks, and somebody else performs it. */
export interface KeySetRequest {
  /**
   * A reference without scheme, since policies of the backend say whether TLS is spoken:
   * `//idp.default.svc:8080/keys`, `//idp.example.com:443/keys#GatewayBackend/default/idp`. It names
   * the key set in events.
   */
  readonly uri: string
  readonly target: Exclude<DirectTarget, { readonly type: 'invalid' }>
  /** Of a static backend. */
  readonly address?: { readonly host: string; readonly port: number }
  /** With a leading slash, and the query where there is one. */
  readonly path: string
  /** Milliseconds between two fetches. */
  readonly cacheMs: number
}

/** The name of the fact that holds a FetchedKeys. */
export function keySetFact(uri: string): string {
  return `key-set:${uri}`
}

/** A fact that is true where nobody fetches key sets, such as for manifests that are only read. */
export const keySetsPendingFact = 'key-sets-pending'

export interface FetchedKeys {
  /** Of the content, in the words of whoever fetched it. */
  readonly digest: string
  readonly keySet: Readonly<Record<string, unknown>>
}
