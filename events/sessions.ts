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
    'Sessions or tokens of users are refused from now on: a user has signed out at a proxy, the provider has reported it, or an operator has revoked them (`sluice revoke`).',
  fields: {
    issuer: 'Issuer of the sessions or tokens.',
    entries:
      'What has ended: digest of its name (a user, a session or a token), the time until which it was issued (seconds since the epoch, by the clock of the issuer), and the time after which nothing of it is valid any more (milliseconds since the epoch).',
    reason: '`sign-out`, or why, in the words of the operator.',
    author: 'Name of the proxy, or who has revoked them.',
  },
})
export type SessionsEnded = EventOf<typeof sessionsEnded>
