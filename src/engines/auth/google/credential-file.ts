/** Gets tokens with Google credential files; the `type` field of a file selects how. */
import { sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type AccessToken, fetchText, fetchToken, parseTime, readFields } from '../access-token.ts'

export const cloudScope = 'https://www.googleapis.com/auth/cloud-platform'

const service = 'the token service of Google'
const defaultTokenUrl = 'https://oauth2.googleapis.com/token'
const defaultExchangeUrl = 'https://sts.googleapis.com/v1/token'
/** Lifetime of an assertion: the maximum that the service accepts. */
const assertionSeconds = 3_600

type Fields = Readonly<Record<string, unknown>>

/** An access token of Google's APIs, or an ID token for an audience. */
export type WantedToken = { readonly audience: string } | 'accessToken'

/** Returns the text of a required field; throws if it is missing or empty. */
function textAt(fields: Fields, name: string, path: string): string {
  const value = fields[name]
  if (typeof value !== 'string' || value === '') throw new Error(`${path} has no ${name}`)
  return value
}

const orDefault = (value: unknown, otherwise: string): string =>
  typeof value === 'string' && value !== '' ? value : otherwise

/** Gets a token. Rejects if the type of the file is unknown or the token service returns no token. */
export async function tokenOfFile(
  text: string,
  path: string,
  wanted: WantedToken = 'accessToken',
): Promise<AccessToken> {
  const fields = readFields(text)
  const read = readers.get(fields.type)
  if (read === undefined) {
    const type = typeof fields.type === 'string' ? `type ${fields.type}` : 'no type'
    throw new Error(`${path}: credentials of ${type} are not supported`)
  }
  const token = await read(fields, path, wanted)
  const { quota_project_id: project } = fields
  if (typeof project !== 'string' || !/^[a-z0-9:.-]+$/i.test(project)) return token
  return { ...token, headers: [['x-goog-user-project', project]] }
}

type Reader = (fields: Fields, path: string, wanted: WantedToken) => Promise<AccessToken>

const readers = new Map<unknown, Reader>([
  ['service_account', serviceAccount],
  ['authorized_user', authorizedUser],
  ['external_account', externalAccount],
])

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Gets a token in exchange for an assertion signed with the account's key (RFC 7523). */
function serviceAccount(fields: Fields, path: string, wanted: WantedToken): Promise<AccessToken> {
  const url = orDefault(fields.token_uri, defaultTokenUrl)
  const now = Math.floor(Date.now() / 1_000)
  const claims = {
    iss: textAt(fields, 'client_email', path),
    ...(wanted === 'accessToken' ? { scope: cloudScope } : { target_audience: wanted.audience }),
    aud: url,
    iat: now,
    exp: now + assertionSeconds,
  }
  const { private_key_id: kid } = fields
  const head = { alg: 'RS256', typ: 'JWT', ...(typeof kid === 'string' && { kid }) }
  const signed = `${encoded(head)}.${encoded(claims)}`
  const signature = signText(textAt(fields, 'private_key', path), signed, path)
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion: `${signed}.${signature}`,
  })
  const request = { method: 'POST', body }
  return wanted === 'accessToken' ? fetchToken(service, url, request) : fetchIdToken(url, request)
}

async function fetchIdToken(url: string, request: RequestInit): Promise<AccessToken> {
  const { id_token: token } = readFields(await fetchText(service, url, request))
  return idToken(token)
}

/** An ID token with its own time of expiry. Throws if it is none. */
export function idToken(token: unknown): AccessToken {
  const claims = typeof token === 'string' ? token.split('.')[1] : undefined
  const { exp } = readFields(Buffer.from(claims ?? '', 'base64url').toString())
  if (typeof token !== 'string' || typeof exp !== 'number' || !/^[\w.-]+$/.test(token)) {
    throw new Error(`${service} answered without an ID token`)
  }
  return { token, expiresAt: exp * 1_000 }
}

function signText(key: string, text: string, path: string): string {
  try {
    return sign('RSA-SHA256', Buffer.from(text), key).toString('base64url')
  } catch {
    // The cause is omitted because its message may contain the key.
    throw new Error(`${path}: private_key is not a key`)
  }
}

function authorizedUser(fields: Fields, path: string, wanted: WantedToken): Promise<AccessToken> {
  if (wanted !== 'accessToken') {
    throw new Error(`${path}: credentials of a user give no ID token for an audience`)
  }
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: textAt(fields, 'client_id', path),
    client_secret: textAt(fields, 'client_secret', path),
    refresh_token: textAt(fields, 'refresh_token', path),
  })
  return fetchToken(service, orDefault(fields.token_uri, defaultTokenUrl), { method: 'POST', body })
}

/** Exchanges a token of another issuer, read from a file or a URL, for a Google token (RFC 8693). */
async function externalAccount(
  fields: Fields,
  path: string,
  wanted: WantedToken,
): Promise<AccessToken> {
  const source = fields.credential_source
  const subject = await subjectToken(isFields(source) ? source : {}, path)
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience: textAt(fields, 'audience', path),
    scope: cloudScope,
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token_type: textAt(fields, 'subject_token_type', path),
    subject_token: subject,
  })
  const url = orDefault(fields.token_url, defaultExchangeUrl)
  const token = await fetchToken(service, url, { method: 'POST', body })
  const { service_account_impersonation_url: account } = fields
  if (typeof account === 'string') return impersonate(account, token, wanted)
  if (wanted === 'accessToken') return token
  throw new Error(`${path}: an ID token needs service_account_impersonation_url`)
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null

async function subjectToken(source: Fields, path: string): Promise<string> {
  const text = await subjectText(source, path)
  const format = isFields(source.format) ? source.format : {}
  if (format.type !== 'json') return text.trim()
  return textAt(readFields(text), textAt(format, 'subject_token_field_name', path), path)
}

function subjectText({ file, url, headers }: Fields, path: string): Promise<string> {
  if (typeof file === 'string') return readFile(file, 'utf8')
  if (typeof url !== 'string') {
    throw new Error(`${path}: credential_source must have a file or a url`)
  }
  const given = isFields(headers) ? (headers as Record<string, string>) : {}
  return fetchText('the source of the subject token', url, { headers: given })
}

/** Gets a token of the service account that the caller impersonates. */
async function impersonate(
  accessTokens: string,
  { token }: AccessToken,
  wanted: WantedToken,
): Promise<AccessToken> {
  const isAccess = wanted === 'accessToken'
  const url = isAccess
    ? accessTokens
    : accessTokens.replace(/generateAccessToken$/, 'generateIdToken')
  const asked = isAccess ? { scope: [cloudScope] } : { ...wanted, includeEmail: true }
  const text = await fetchText(service, url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(asked),
  })
  const { accessToken, expireTime, token: ownId } = readFields(text)
  if (!isAccess) return idToken(ownId)
  if (typeof accessToken !== 'string') throw new Error(`${service} answered without a token`)
  return { token: accessToken, expiresAt: parseTime(expireTime) }
}
