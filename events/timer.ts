import { defineEvent, type EventOf } from './envelope.ts'

export interface TimerFiredData {
  readonly timer: string
  readonly dueAt: string
}

export const timerFired = defineEvent<TimerFiredData>()({
  name: 'TimerFired',
  type: 'dev.sluice.timer.fired.v1',
  version: 1,
  about: 'A timer that the fold had requested fired.',
  fields: {
    timer: 'Name that the fold gave to the timer.',
    dueAt: 'Time at which it was due, in RFC 3339. The time of the envelope is when it fired.',
  },
})
export type TimerFired = EventOf<typeof timerFired>
