/**
 * The verified credentials of a client as texts. Each kind is represented by:
 *
 *   JWT          issuer and subject, or issuer, client and user claims, or else the token itself
 *   API key      the object that has it, and its id, so that a rotated key stays the same principal
 *   basic        the user name
 *   certificate  the SPIFFE id, else issuer, subject and alternative names
 *   extAuth      the user that the service names, else its metadata and the credentials that were sent to it
 */
import type { PeerCertificate } from '../../ground/exchange/exchange.ts'
import type { Learned, LearnedRecord, LearnedValue } from '../../ground/exchange/learned.ts'

/** Returns the kinds in the order above; undefined for those that the request does not have. */
export function credentialParts(
  learned: Learned,
  certificate: PeerCertificate | undefined,
): readonly (string | undefined)[] {
  return [
    ownerOfToken(learned),
    ownerOfKey(learned),
    learned.basicAuth?.username,
    ownerOfCertificate(certificate),
    callerOf(learned),
  ]
}

/** Keys of several objects can have one id. */
function ownerOfKey({ apiKey, apiKeySource }: Learned): string | undefined {
  if (apiKey === undefined) return undefined
  return JSON.stringify([apiKeySource, textIn(apiKey, 'id') ?? canonical(apiKey)])
}

/** Claims that name a client (RFC 9068 section 2.2, OpenID Connect Core section 2, and vendors). */
const clientClaims = ['client_id', 'azp', 'cid', 'appid']
/** Returns the first claim that names the client. */
export const clientOf = (jwt: LearnedRecord): string | undefined =>
  clientClaims.map((name) => textIn(jwt, name)).find((value) => value !== undefined)

/** Claims that name a user if there is no `sub`. */
const userClaims = ['oid', 'uid', 'user_id', 'preferred_username', 'username', 'upn', 'email']

function ownerOfToken({ jwt, jwtToken }: Learned): string | undefined {
  if (jwt === undefined) return undefined
  const issuer = textIn(jwt, 'iss')
  const subject = textIn(jwt, 'sub')
  if (subject !== undefined) return JSON.stringify(['sub', issuer, subject])
  const named = [...clientClaims, ...userClaims].flatMap((name) => {
    const value = textIn(jwt, name)
    return value === undefined ? [] : [[name, value]]
  })
  if (named.length > 0) return JSON.stringify(['client', issuer, named])
  return JSON.stringify(['token', jwtToken ?? canonical(jwt)])
}

function ownerOfCertificate(certificate: PeerCertificate | undefined): string | undefined {
  if (certificate === undefined) return undefined
  const { spiffeId, issuer, subject, subjectAltNames, pem } = certificate
  if (spiffeId !== undefined) return JSON.stringify(['spiffe', spiffeId])
  if (subject === '' && subjectAltNames.length === 0) return JSON.stringify(['certificate', pem])
  return JSON.stringify(['names', issuer, subject, subjectAltNames])
}

/** Members of external authorization metadata that name a user. */
const userMembers = [
  'sub',
  'subject',
  'user',
  'user_id',
  'userId',
  'uid',
  'username',
  'userName',
  'preferred_username',
  'principal',
  'identity',
  'email',
]

function callerOf(learned: Learned): string | undefined {
  const { extauthz, authorizedCaller } = learned
  if (extauthz === undefined && authorizedCaller === undefined) return undefined
  const users = userMembers.flatMap((name) => {
    const value = extauthz?.[name]
    return value === undefined || value === null || value === '' ? [] : [[name, canonical(value)]]
  })
  const { identity = [], credentials = [] } = authorizedCaller ?? {}
  if (users.length + identity.length > 0) return JSON.stringify(['user', users, identity])
  // A verified token is represented by its claims, because its text changes when it is renewed.
  const isVerified = (learned.jwt ?? learned.apiKey ?? learned.basicAuth) !== undefined
  const checkedCredentials = credentials.filter(
    ([name]) => !(isVerified && name === 'authorization'),
  )
  if (checkedCredentials.length === 0 && extauthz === undefined) return undefined
  return JSON.stringify(['credentials', checkedCredentials, canonical(extauthz)])
}

export function textIn(record: LearnedRecord, name: string): string | undefined {
  const value = record[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** JSON with sorted members, so that equal values have equal texts. */
export function canonical(value: LearnedValue | undefined): string {
  if (typeof value === 'bigint') return `${value}`
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? ''
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, one]) => `${JSON.stringify(name)}:${canonical(one)}`).join(',')}}`
}
