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
    'A key set was fetched and differs from the previous one. An unchanged key set adds no event.',
  fields: {
    uri: 'URI from which it was fetched.',
    digest: 'Digest of the key set.',
    keySet: 'The JSON Web Key Set (RFC 7517), public members only.',
  },
})
export type JwksFetched = EventOf<typeof jwksFetched>
