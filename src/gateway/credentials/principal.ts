/** Who a verified token belongs to, for credentials that are kept for one user. */
import type { Learned } from '../../ground/exchange/learned.ts'

/** Returns issuer, subject and client of the verified token as text; undefined without a subject. */
export function principalKey({ jwt }: Learned): string | undefined {
  if (typeof jwt?.sub !== 'string' || jwt.sub === '') return undefined
  return JSON.stringify([jwt.iss ?? null, jwt.sub, jwt.client_id ?? jwt.azp ?? null])
}
