/** Ends what a user has at the gateways of an event log, when the user is erased. */
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
  /** Until when sessions and tokens are refused that the user has now. */
  readonly until: string
  /** Number of grants that were removed. */
  readonly grants: number
}

/**
 * Refuses the sessions and tokens that a user has now, and removes the grants of the user without keeping the name.
 * @throws UsageError
 */
export async function endUser(user: UserToEnd, report: Output['report']): Promise<EndedUser> {
  const { issuer, sub } = user
  const { json } = await revoke({ ...user, sub: [sub] }, report)
  const grants = await removeGrantsOf(nameOfUser(issuer, sub), user, report)
  return { until: (json as { readonly until: string }).until, grants }
}
