import { byteSize, choice, object, optional } from '../../../ground/schema/field.ts'
import { atLeastOneOf } from '../../../ground/schema/rules.ts'
import { definePolicy } from '../define.ts'

const side = object('BufferedMessage', {
  maxBytes: optional(byteSize({ min: 1, max: 268_435_456 }), {
    doc: 'Maximum size of a held body; `maxBufferSize` if not set.',
    unit: 'bytes',
  }),
  failureMode: optional(
    choice('BufferFailureMode', {
      FailClosed: 'the client gets 413 for a request, 502 for a response',
      FailOpen: 'it is forwarded as it arrives',
    }),
    { doc: 'What happens to a larger body.', default: 'FailClosed' },
  ),
})

/** Holds bodies until they are complete, for peers that cannot take streams or chunks. */
export const buffer = definePolicy({
  section: 'traffic',
  field: 'buffer',
  schema: object(
    'Buffer',
    {
      request: optional(side, 'Holds requests.'),
      response: optional(side, 'Holds responses.'),
    },
    { rules: [atLeastOneOf('request', 'response')] },
  ),
  doc: 'Holds bodies in memory until they are complete, and forwards them with a Content-Length. Streams and tunnels then arrive only when they end.',
  security: false,
  changesRequest: false,
  // Records have no bodies, so simulations assume that bodies do not exceed limits.
  endsRequest: false,
  conditional: 'at most one',
  compile: (config) => ({ config, problems: [] }),
  apply: () => import('./apply.ts'),
})
