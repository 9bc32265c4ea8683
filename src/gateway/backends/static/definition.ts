/** GatewayBackends with a fixed host and port. */
import { object, required } from '../../../ground/schema/field.ts'
import { hostText } from '../../../ground/schema/host.ts'
import { portNumber } from '../../../ground/schema/shapes/references.ts'
import { defineBackend } from '../define.ts'

declare module '../../../ground/model/resources.ts' {
  interface Destinations {
    readonly static: { readonly host: string; readonly port: number }
  }
}

export const staticBackend = defineBackend({
  field: 'static',
  type: 'static',
  doc: 'A fixed host and port.',
  schema: object('StaticBackend', {
    host: required(hostText, 'Host name or address that requests are sent to.'),
    port: required(portNumber, 'Port that requests are sent to.'),
  }),
  derive: ({ host, port }) => ({ destination: { host, port } }),
  address: ({ host, port }) => ({ host, port }),
})
