import { defineEvent, type EventOf } from './envelope.ts'

export interface TimerFiredData {
  readonly timer: string
  readonly dueAt: string
}

export const timerFired = defineEvent<TimerFiredData>()({
  name: 'TimerFired',
  type: 'dev.sluice.timer.fired.v1',
  version: 1,
  about: 'A time has come that the fold had asked to be told of.',
  fields: {
    timer: 'Name that the fold gave to the timer.',
    dueAt: 'RFC 3339; when it was due. The time of the envelope says when it fired.',
  },
})
export type TimerFired = EventOf<typeof timerFired>
