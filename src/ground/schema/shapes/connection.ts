import { integer, object, optional } from '../field.ts'
import { duration } from '../strings.ts'

/** TCP keepalive settings. */
export const keepalive = object('Keepalive', {
  retries: optional(integer({ min: 1, max: 64 }), {
    doc: 'Unanswered probes after which the connection is dropped.',
    default: 9,
  }),
  time: optional(duration, { doc: 'Idle time before the first probe.', default: '180s' }),
  interval: optional(duration, { doc: 'Time between probes.', default: '180s' }),
})
