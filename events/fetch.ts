import { defineEvent, type EventOf } from './envelope.ts'

export interface JwksFetchedData {
  readonly uri: string
  readonly digest: string
  readonly keySet: Readonly<Record<string, unknown>>
}

export const jwksFetched = defineEvent<JwksFetchedData>()({
  name: 'JwksFetched',
  type: 'dev.sluice.jwks.fetched.v1',
  version: 1,
  about:
    'A key set was fetched and differs from the previous one, or checks of an OpenID provider have another result. An unchanged one adds no event.',
  fields: {
    uri: 'URI from which it was fetched, or of the metadata of the provider.',
    digest: 'Digest of the key set.',
    keySet:
      'The JSON Web Key Set (RFC 7517), public members only. For a provider, `problem` says why it cannot be used; without it, it can.',
  },
})
export type JwksFetched = EventOf<typeof jwksFetched>

export interface DocumentFetchedData {
  readonly uri: string
  readonly digest: string
  readonly document: Readonly<Record<string, unknown>>
}

export const documentFetched = defineEvent<DocumentFetchedData>()({
  name: 'DocumentFetched',
  type: 'dev.sluice.document.fetched.v1',
  version: 1,
  about:
    'An OpenAPI document was fetched and differs from the previous one, or fetching it began to fail or to work again. An unchanged one adds no event.',
  fields: {
    uri: 'URI of the document, with the GatewayBackend and its target. Events about failures add ` problem`.',
    digest: 'Digest of the document.',
    document:
      'The document as JSON. In events about failures, `problem` is the reason; it is omitted once fetching works again.',
  },
})
export type DocumentFetched = EventOf<typeof documentFetched>
