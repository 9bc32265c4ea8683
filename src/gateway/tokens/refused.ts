/**
 * Sessions and tokens that this worker refuses, as the control plane says, for all policies. Users are signed out in
 * every proxy this way, and operators revoke tokens.
 */
import type { Claims } from '../../engines/auth/jwt/token.ts'
import {
  EndedList,
  endedId,
  nameOfSubject,
  nameOfToken,
  type ReportEnded,
} from '../../ground/model/ended-sessions.ts'

export const refused = new EndedList()

let report: ReportEnded = () => undefined

/** Sets who gets reports of this worker. */
export function reportEndedTo(receive: ReportEnded): void {
  report = receive
}

/** Reports that sessions have ended here, so that other proxies and later processes know it. */
export const reportEnded: ReportEnded = (ended) => report(ended)

/** The result of a check, which holds until the list changes. Verified claims are the same object for many requests. */
const checked = new WeakMap<Claims, { readonly version: number; readonly isRevoked: boolean }>()

/** Whether a token with these claims was revoked. `issuer` is used if the claims have none. */
export function isRevoked(claims: Claims, issuer?: string): boolean {
  if (refused.size === 0) return false
  const known = checked.get(claims)
  if (known?.version === refused.version) return known.isRevoked
  const { iss = issuer, sub, jti, iat } = claims
  if (typeof iss !== 'string') return false
  const names = [
    ...(typeof jti === 'string' ? [nameOfToken(jti)] : []),
    ...(typeof sub === 'string' ? [nameOfSubject(sub)] : []),
  ]
  const ids = names.map((name) => endedId(iss, undefined, name))
  // A token that does not say when it was issued may be an old one.
  const result = refused.has(ids, typeof iat === 'number' ? iat : 0, Date.now())
  checked.set(claims, { version: refused.version, isRevoked: result })
  return result
}

/** The error description that clients get for a revoked token. */
export const revokedText = 'the token was revoked'
