import { choice, list, object, optional } from '../../../ground/schema/field.ts'
import { addressRange } from '../../../ground/schema/strings.ts'
import { rangeProblems } from '../address-ranges.ts'
import { definePolicy } from '../define.ts'

/** Reads the client of a connection from the PROXY header of a load balancer. */
export const frontendProxyProtocol = definePolicy({
  section: 'frontend',
  field: 'proxyProtocol',
  schema: object('FrontendProxyProtocol', {
    version: optional(
      choice('ProxyProtocolVersion', {
        V1: 'version 1, the text form',
        V2: 'version 2, the binary form',
        All: 'both versions',
      }),
      { doc: 'Accepted versions.', default: 'V2' },
    ),
    mode: optional(
      choice('ProxyProtocolMode', {
        Strict: 'connections without a header are closed',
        Optional:
          'connections without a header are accepted, after 3 seconds if they send nothing; a client can then forge one',
      }),
      { doc: 'Whether each connection must begin with a header.', default: 'Strict' },
    ),
    from: optional(
      list(addressRange, { min: 1, max: 64 }),
      'Addresses and CIDRs of the load balancers. No header is read from others. If not set, a header is read from all.',
    ),
  }),
  doc: 'Reads the address of the client from the PROXY protocol header that a load balancer sends at the start of a connection. Applies to the whole port.',
  security: true,
  compile: ({ version = 'V2', mode = 'Strict', from }) => ({
    config: {
      versions: version === 'All' ? [1, 2] : [version === 'V1' ? 1 : 2],
      isOptional: mode === 'Optional',
      from,
    },
    problems: rangeProblems('from', from),
  }),
  apply: () => import('./apply.ts'),
})
