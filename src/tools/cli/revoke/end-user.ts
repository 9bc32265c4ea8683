/** Ends the sessions, tokens and grants of an erased user at all gateways of an event log. */
import { nameOfUser } from '../../../gateway/principal/principal.ts'
import { removeGrantsOf } from '../grants/grants.ts'
import type { LogPlace } from '../recording/change-log.ts'
import type { Output } from '../shared/output.ts'
import { revoke } from './revoke.ts'

interface UserToEnd extends LogPlace {
  readonly issuer: string
  readonly sub: string
  readonly for: string
  readonly grantStore?: string
  readonly reason: string
  readonly author: string
}

export interface EndedUser {
  /** RFC 3339 time until which the present sessions and tokens of the user are refused. */
  readonly until: string
  /** Number of grants that were removed. */
  readonly grants: number
}

/**
 * Refuses the present sessions and tokens of a user, and removes the grants and the name of the user.
 * @throws UsageError
 */
export async function endUser(user: UserToEnd, report: Output['report']): Promise<EndedUser> {
  const { issuer, sub } = user
  const { json } = await revoke({ ...user, sub: [sub] }, report)
  const grants = await removeGrantsOf(nameOfUser(issuer, sub), user, report)
  return { until: (json as { readonly until: string }).until, grants }
}
