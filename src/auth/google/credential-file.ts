/** Files of Google credentials, by their type. */
import { sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type AccessToken, fetchToken } from '../access-token.ts'
import { fetchText, readFields } from '../fetch-text.ts'

export const cloudScope = 'https://www.googleapis.com/auth/cloud-platform'

const what = 'the token service of Google'
const defaultTokenUrl = 'https://oauth2.googleapis.com/token'
const defaultExchangeUrl = 'https://sts.googleapis.com/v1/token'
/** Seconds that an assertion holds; the most that is taken. */
const assertionSeconds = 3_600

type Fields = Readonly<Record<string, unknown>>

/** A text that must be there. */
function textAt(fields: Fields, name: string, path: string): string {
  const value = fields[name]
  if (typeof value !== 'string' || value === '') throw new Error(`${path} has no ${name}`)
  return value
}

const orDefault = (value: unknown, otherwise: string): string =>
  typeof value === 'string' && value !== '' ? value : otherwise

/** Rejects where the file is of no known type, or its token service gives nothing. */
export async function tokenOfFile(text: string, path: string): Promise<AccessToken> {
  const fields = readFields(text)
  const token = await byType(fields, path)
  const { quota_project_id: project } = fields
  if (typeof project !== 'string' || !/^[a-z0-9:.-]+$/i.test(project)) return token
  return { ...token, headers: [['x-goog-user-project', project]] }
}

function byType(fields: Fields, path: string): Promise<AccessToken> {
  switch (fields.type) {
    case 'service_account':
      return serviceAccount(fields, path)
    case 'authorized_user':
      return authorizedUser(fields, path)
    case 'external_account':
      return externalAccount(fields, path)
    default: {
      const type = typeof fields.type === 'string' ? `type ${fields.type}` : 'no type'
      return Promise.reject(new Error(`${path}: credentials of ${type} are not supported`))
    }
  }
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A token for an assertion that the account's key has signed (RFC 7523). */
function serviceAccount(fields: Fields, path: string): Promise<AccessToken> {
  const url = orDefault(fields.token_uri, defaultTokenUrl)
  const now = Math.floor(Date.now() / 1_000)
  const claims = {
    iss: textAt(fields, 'client_email', path),
    scope: cloudScope,
    aud: url,
    iat: now,
    exp: now + assertionSeconds,
  }
  const { private_key_id: kid } = fields
  const head = { alg: 'RS256', typ: 'JWT', ...(typeof kid === 'string' && { kid }) }
  const signed = `${encoded(head)}.${encoded(claims)}`
  const signature = signedBy(textAt(fields, 'private_key', path), signed, path)
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion: `${signed}.${signature}`,
  })
  return fetchToken(what, url, { method: 'POST', body })
}

function signedBy(key: string, text: string, path: string): string {
  try {
    return sign('RSA-SHA256', Buffer.from(text), key).toString('base64url')
  } catch {
    // The cause would quote the key.
    throw new Error(`${path}: private_key is not a key`)
  }
}

function authorizedUser(fields: Fields, path: string): Promise<AccessToken> {
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: textAt(fields, 'client_id', path),
    client_secret: textAt(fields, 'client_secret', path),
    refresh_token: textAt(fields, 'refresh_token', path),
  })
  return fetchToken(what, orDefault(fields.token_uri, defaultTokenUrl), { method: 'POST', body })
}

/** A token of somebody else, from a file or a URL, exchanged for one of Google (RFC 8693). */
async function externalAccount(fields: Fields, path: string): Promise<AccessToken> {
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
  const token = await fetchToken(what, url, { method: 'POST', body })
  const { service_account_impersonation_url: account } = fields
  return typeof account === 'string' ? impersonated(account, token) : token
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

/** The token of a service account, for one that may act as it. */
async function impersonated(url: string, { token }: AccessToken): Promise<AccessToken> {
  const text = await fetchText(what, url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ scope: [cloudScope] }),
  })
  const { accessToken, expireTime } = readFields(text)
  if (typeof accessToken !== 'string') throw new Error(`${what} answered without a token`)
  const expiresAt = Date.parse(String(expireTime))
  return { token: accessToken, ...(!Number.isNaN(expiresAt) && { expiresAt }) }
}
