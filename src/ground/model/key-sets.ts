/** JSON Web Key Sets: what the control plane must fetch for policies, and what it has fetched. */
import { objectText, parseObjectKey } from './names.ts'
import type { DirectTarget } from './resources.ts'

/** A key set to fetch, and to fetch again regularly. The fold creates requests; `src/control/effects` fetches. */
export interface KeySetRequest {
  /**
   * Identifies the key set in events. A URI without scheme, since policies of the backend decide
   * whether TLS is used: `//idp.default.svc:8080/keys`,
   * `//idp.example.com:443/keys#GatewayBackend/default/idp`.
   */
  readonly uri: string
  readonly target: Exclude<DirectTarget, { readonly type: 'invalid' }>
  /** Set if the target is a static backend. */
  readonly address?: { readonly host: string; readonly port: number }
  /** Path with a leading slash, and with the query if there is one. */
  readonly path: string
  /** Milliseconds after which the key set is fetched again. */
  readonly cacheMs: number
}

/** An OpenID provider to check regularly: whether its metadata and its keys can be used. */
export interface IssuerRequest {
  /** Identifies the check in events: the URL of the metadata, or of the key set if nothing is discovered. */
  readonly uri: string
  readonly issuer: string
  /** Set if the key set is not that of the metadata. */
  readonly jwksURI?: string | undefined
  /** Whether endpoints are read from the metadata. */
  readonly isDiscovered: boolean
  /** Backend through which the origin of the issuer is reached; if not set, its host name is resolved. */
  readonly backend?: Pick<KeySetRequest, 'target' | 'address'> | undefined
  /** Milliseconds after which it is checked again. */
  readonly cacheMs: number
}

/** An OpenAPI document that a target of a GatewayBackend serves. */
export interface ApiDocumentRequest extends KeySetRequest {
  /** The target, whose policies apply. */
  readonly section: string
  /** Returns why the target cannot use a document; undefined if it can. */
  readonly problemOf: (document: unknown) => string | undefined
}

const apiDocumentScheme = 'openapi:'

/** Identifies a document in events: `openapi://api.example.com:443/openapi.json#GatewayBackend/default/api/api`. */
export const apiDocumentUri = (
  { namespace, name }: { readonly namespace: string; readonly name: string },
  section: string,
  { host, port }: { readonly host: string; readonly port: number },
  path: string,
): string =>
  `${apiDocumentScheme}//${host}:${port}${path}#GatewayBackend/${namespace}/${name}/${section}`

export const isApiDocument = (uri: string): boolean => uri.startsWith(apiDocumentScheme)

/** The URI of events about failures to fetch a document. Their `problem` is the reason. */
export const problemUri = (uri: string): string => `${uri} problem`

/** Where an issuer has its metadata (OpenID Connect Discovery 1.0, section 4). */
export const metadataURL = (issuer: string): string =>
  `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`

/** A document that the control plane fetches regularly. */
export type DocumentRequest = KeySetRequest | IssuerRequest | ApiDocumentRequest

/**
 * Names a key set in messages: `idp.default.svc:8080/keys`, or
 * `idp.example.com:443/keys (GatewayBackend default/idp)`.
 * @param scheme how the keys are fetched; omitted where it is not known, as in conditions
 */
export function keySetText(uri: string, scheme?: 'http' | 'https'): string {
  const [, address = uri, backend] = /^(?:openapi:)?\/\/([^#]*)(?:#(.*))?$/s.exec(uri) ?? []
  const url = scheme === undefined ? address : `${scheme}://${address}`
  return backend === undefined ? url : `${url} (${objectText(parseObjectKey(backend))})`
}

/** The name of the input that holds the FetchedKeys of this URI. */
export function keySetInput(uri: string): string {
  return `key-set:${uri}`
}

/** An input that is true if nothing fetches the key sets that are missing, such as when manifests are validated. */
export const keySetsPendingInput = 'key-sets-pending'

export interface FetchedKeys {
  /** Digest of the key set, computed by the fetcher. */
  readonly digest: string
  readonly keySet: Readonly<Record<string, unknown>>
}
