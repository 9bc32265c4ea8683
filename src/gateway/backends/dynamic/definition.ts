/** GatewayBackends that send each request to the host that the request names. */
import { object } from '../../../ground/schema/field.ts'
import { defineBackend } from '../define.ts'

declare module '../../../ground/model/resources.ts' {
  interface Destinations {
    readonly dynamic: object
  }
}

export const dynamicBackend = defineBackend({
  field: 'dynamicForwardProxy',
  type: 'dynamic',
  doc: 'The host in the Host header or, for TLS, in the SNI. Clients choose the destination, so protect the route with access controls.',
  schema: object('DynamicForwardProxyBackend', {}),
  derive: () => ({
    destination: {},
    notes: ['clients choose the destination: put access control in front of this backend'],
  }),
  streamProblem: ({ hasServerNames }) =>
    hasServerNames
      ? undefined
      : 'a dynamic forward proxy needs a name to go by, which only TLS connections have',
  choosesEndpoints: 'clients choose the destination',
})
