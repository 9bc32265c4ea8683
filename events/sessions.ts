import { defineEvent, type EventOf } from './envelope.ts'

export interface SessionsEndedData {
  readonly issuer: string
  readonly entries: readonly {
    readonly id: string
    readonly at: number
    readonly until: number
  }[]
  readonly reason: string
  readonly author: string
}

export const sessionsEnded = defineEvent<SessionsEndedData>()({
  name: 'SessionsEnded',
  type: 'dev.sluice.sessions.ended.v1',
  version: 1,
  about:
    'Sessions or tokens of users are refused from now on, because a user signed out at a proxy, the provider reported a sign-out, or an operator revoked them (`sluice revoke`).',
  fields: {
    issuer: 'Issuer of the sessions or tokens.',
    entries:
      'What is refused: `id` is a digest of the user, session or token. What was issued to it up to the time `at` is refused (seconds since the epoch, by the clock of the issuer). After the time `until`, it has expired anyway (milliseconds since the epoch).',
    reason: '`sign-out`, or the reason that the operator gave.',
    author: 'Name of the proxy or of the operator.',
  },
})
export type SessionsEnded = EventOf<typeof sessionsEnded>
