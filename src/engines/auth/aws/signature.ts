/**
 * AWS Signature Version 4: headers that authenticate a request (AWS documentation, "Signature
 * Version 4 signing process"). The secret key is not sent. Signing keys are derived from it for one
 * day, region and service, and cached.
 */
import { createHmac, hash } from 'node:crypto'
import type { SigningScope } from '../../../ground/exchange/forwarding.ts'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Session token of temporary credentials; it is sent in a header that is signed as well. */
  readonly sessionToken?: string
}

export interface SignableRequest {
  readonly method: string
  /** Value of the Host header. */
  readonly host: string
  /** Path as sent: percent-encoded once, without the query. */
  readonly path: string
  /** Query string without `?`; undefined if the URL has none. */
  readonly query: string | undefined
  /** Headers to sign in addition to Host and the headers that signing adds. Names are in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** SHA-256 of the body in hexadecimal, or `UNSIGNED-PAYLOAD`. */
  readonly payloadHash: string
}

/** Returns the SHA-256 of a body in hexadecimal; without a body, that of empty input. */
export function payloadHash(body: Uint8Array | undefined): string {
  return hash('sha256', body ?? '')
}

/** S3 accepts this instead of a hash; then only TLS protects the body. */
export const unsignedPayload = 'UNSIGNED-PAYLOAD'

/**
 * Returns the headers to add to a request: `x-amz-date`, `x-amz-content-sha256` for S3,
 * `x-amz-security-token` for temporary credentials, and `authorization`. `time` is in milliseconds
 * since the epoch; AWS accepts a clock difference of five minutes.
 */
export function signRequest(
  request: SignableRequest,
  scope: SigningScope,
  credentials: AwsCredentials,
  time: number,
): readonly (readonly [name: string, value: string])[] {
  const stamp = new Date(time).toISOString().replaceAll(/[-:]|\.\d{3}/g, '')
  const day = stamp.slice(0, 8)
  const added: (readonly [string, string])[] = [['x-amz-date', stamp]]
  if (scope.service === 's3') added.push(['x-amz-content-sha256', request.payloadHash])
  const { sessionToken } = credentials
  if (sessionToken !== undefined) added.push(['x-amz-security-token', sessionToken])
  const headers = canonicalHeaders([['host', request.host], ...added, ...request.headers])
  const canonical = [
    request.method,
    scope.service === 's3' ? canonicalS3Path(request.path) : canonicalPath(request.path),
    canonicalQuery(request.query),
    ...headers.lines,
    '',
    headers.names,
    request.payloadHash,
  ].join('\n')
  const credentialScope = `${day}/${scope.region}/${scope.service}/aws4_request`
  const text = `AWS4-HMAC-SHA256\n${stamp}\n${credentialScope}\n${sha256(canonical)}`
  const signature = hmac(signingKey(credentials.secretAccessKey, day, scope), text).toString('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${credentialScope}, SignedHeaders=${headers.names}, Signature=${signature}`
  return [...added, ['authorization', authorization]]
}

const sha256 = (text: string): string => hash('sha256', text)

const hmac = (key: Buffer | string, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest()

/** Cached signing keys by the inputs that they are derived from. */
const signingKeys = new Map<string, Buffer>()
const maxSigningKeys = 256

function signingKey(secret: string, day: string, { region, service }: SigningScope): Buffer {
  const id = `${day}/${region}/${service}/${secret}`
  let key = signingKeys.get(id)
  if (key === undefined) {
    const regionKey = hmac(hmac(`AWS4${secret}`, day), region)
    key = hmac(hmac(regionKey, service), 'aws4_request')
    if (signingKeys.size >= maxSigningKeys) signingKeys.clear()
    signingKeys.set(id, key)
  }
  return key
}

function canonicalHeaders(fields: readonly (readonly [string, string])[]): {
  readonly lines: readonly string[]
  readonly names: string
} {
  const byName = new Map<string, string[]>()
  for (const [name, value] of fields) {
    const values = byName.get(name) ?? []
    values.push(value.trim().replaceAll(/ +/g, ' '))
    byName.set(name, values)
  }
  const names = [...byName.keys()].sort()
  const lines = names.map((name) => `${name}:${(byName.get(name) ?? []).join(',')}`)
  return { lines, names: names.join(';') }
}

/** Percent-encodes the sent path a second time, without empty and dot segments (RFC 3986 5.2.4). */
function canonicalPath(path: string): string {
  const kept: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  const isFolder = kept.length > 0 && path.endsWith('/')
  return `/${kept.map(encode).join('/')}${isFolder ? '/' : ''}`
}

/** S3 object keys may be any text, so no segment is removed; each is percent-encoded once. */
function canonicalS3Path(path: string): string {
  return path
    .split('/')
    .map((segment) => encode(decode(segment)))
    .join('/')
}

function canonicalQuery(query: string | undefined): string {
  if (query === undefined || query === '') return ''
  return query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=')
      const name = equals < 0 ? pair : pair.slice(0, equals)
      const value = equals < 0 ? '' : pair.slice(equals + 1)
      return [encode(decode(name)), encode(decode(value))] as const
    })
    .sort(([a, x], [b, y]) => (a === b ? compare(x, y) : compare(a, b)))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** Percent-encodes all but unreserved characters (RFC 3986 2.3). Each character is one byte (Latin-1). */
function encode(text: string): string {
  let encoded = ''
  for (const byte of Buffer.from(text, 'latin1')) {
    const character = String.fromCharCode(byte)
    encoded += /[A-Za-z0-9\-._~]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded
}

/** Decodes percent-encoding to Latin-1 text; invalid escapes stay as they are. */
function decode(text: string): string {
  return text.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
}
