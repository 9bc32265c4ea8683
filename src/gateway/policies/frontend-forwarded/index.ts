import { choice, integer, list, object, optional } from '../../../ground/schema/field.ts'
import { atMostOneOf } from '../../../ground/schema/rules.ts'
import { addressRange } from '../../../ground/schema/strings.ts'
import { rangeProblems } from '../address-ranges.ts'
import { definePolicy } from '../define.ts'

/** Decides which proxies in front of the gateway are trusted, and which headers about the client backends get. */
export const frontendForwarded = definePolicy({
  section: 'frontend',
  field: 'forwarded',
  schema: object(
    'FrontendForwarded',
    {
      trustedProxies: optional(
        list(addressRange, { min: 1, max: 64 }),
        'Addresses and CIDRs of the proxies in front of the gateway. If neither this nor trustedHops is set, the setting `trusted-proxies` applies.',
      ),
      trustedHops: optional(
        integer({ min: 1, max: 32 }),
        'Number of proxies in front of the gateway. The client is the entry of X-Forwarded-For at this position from its end. Use it only if clients cannot reach the gateway directly.',
      ),
      headers: optional(
        choice('ForwardedHeaders', {
          Keep: 'backends get the headers that the client sent',
          Append:
            'adds the address of the peer to X-Forwarded-For, whose earlier entries the client may have forged, and sets the other headers unless a trusted proxy has',
          Replace: 'like Append, but X-Forwarded-For has only the address of the client',
        }),
        {
          doc: 'The headers X-Forwarded-For, -Host, -Port, -Proto, -Scheme and X-Real-IP of requests. Append and Replace also remove Forwarded and all other X-Forwarded-* that no trusted proxy has sent, and headers that backends may treat as one of these because of a _ in the name.',
          default: 'Keep',
        },
      ),
    },
    {
      rules: [atMostOneOf('trustedProxies', 'trustedHops')],
    },
  ),
  doc: 'Addresses of clients that come through proxies, and the X-Forwarded-* headers.',
  security: true,
  compile: ({ headers = 'Keep', trustedProxies, trustedHops }) => ({
    config: { headers, trustedProxies, trustedHops },
    problems: rangeProblems('trustedProxies', trustedProxies),
  }),
  apply: () => import('./apply.ts'),
})
