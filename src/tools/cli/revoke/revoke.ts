/** `sluice revoke` appends which tokens and sessions are refused, also while gateways run. */
import { randomUUID } from 'node:crypto'
import { type SluiceEvent, sessionsEnded } from '../../../../events/index.ts'
import { newEvent } from '../../../control/log/index.ts'
import {
  type EndedEntry,
  endedId,
  maxEndedMs,
  nameOfSubject,
  nameOfToken,
} from '../../../ground/model/ended-sessions.ts'
import { changeLog, inEvents, type LogPlace } from '../recording/change-log.ts'
import { defaultAuthor } from '../recording/operator-change.ts'
import { timeAfter } from '../shared/expiry.ts'
import { type CommandResult, type Output, UsageError } from '../shared/output.ts'

export interface RevokeOptions extends LogPlace {
  readonly issuer: string
  readonly jti?: readonly string[]
  readonly sub?: readonly string[]
  readonly for: string
  readonly reason: string
  readonly author?: string
}

/** Readers accept these events whichever replica holds the lease, like all events without an epoch. */
const writer = { source: '/sluice/revoke', epoch: 0 } as const

/** @throws UsageError if nothing is named */
export async function revoke(
  options: RevokeOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const { issuer, jti = [], sub = [], reason, author = defaultAuthor() } = options
  if (jti.length + sub.length === 0) throw new UsageError('set --jti or --sub')
  const now = Date.now()
  const end = timeAfter(options.for, '--for')
  const until = Date.parse(end)
  if (!(until > now && until <= now + maxEndedMs)) {
    throw new UsageError(`--for ${options.for}: expected at most a year from now`)
  }
  const entries = [
    // A token is refused whatever its time says. A user may sign in again.
    ...jti.map((id) => entryOf(issuer, nameOfToken(id), until / 1_000, until)),
    ...sub.map((id) => entryOf(issuer, nameOfSubject(id), Math.floor(now / 1_000), until)),
  ]
  const run = randomUUID()
  const events = inEvents(entries, ({ id }) => id.length + 40).map((part, at): SluiceEvent => {
    const data = { issuer, entries: part, reason, author }
    const subject = { kind: 'Sessions', namespace: 'default', name: 'ended' }
    return newEvent(sessionsEnded, writer, subject, { id: `${run}:${at}`, data })
  })
  await changeLog(options, report, () => ({ events, result: undefined }))
  const named = [...jti.map((id) => `token ${id}`), ...sub.map((id) => `user ${id}`)]
  return {
    text: () => named.map((name) => `${name} of ${issuer}: refused until ${end}`),
    json: { issuer, jti, sub, until: end },
  }
}

const entryOf = (issuer: string, name: string, at: number, until: number): EndedEntry => ({
  id: endedId(issuer, undefined, name),
  at,
  until,
})
