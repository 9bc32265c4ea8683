/**
 * AWS Signature Version 4: request headers that prove who sent what (AWS documentation, "Signature
 * Version 4 signing process"). The secret key never leaves; a key derived from it for one day, region
 * and service is kept.
 */
import { createHash, createHmac } from 'node:crypto'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Of temporary credentials; sent, and signed. */
  readonly sessionToken?: string
}

/** What a signature is good for. */
export interface SigningScope {
  /** Such as `us-east-1`. */
  readonly region: string
  /** The name that the service signs by, such as `bedrock`. */
  readonly service: string
}

export interface SignableRequest {
  readonly method: string
  /** As in the Host header. */
  readonly host: string
  /** As sent: percent-encoded once, without the query. */
  readonly path: string
  /** Without `?`; undefined where there is none. */
  readonly query: string | undefined
  /** Headers to be signed besides Host and those that signing adds; names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** SHA-256 of the body in hexadecimal, or `UNSIGNED-PAYLOAD`. */
  readonly payloadHash: string
}

/** Hash of a body; of nothing where there is none. */
export function payloadHash(body: Uint8Array | undefined): string {
  return createHash('sha256')
    .update(body ?? '')
    .digest('hex')
}

/** S3 takes this in place of a hash; the body is then protected by TLS alone. */
export const unsignedPayload = 'UNSIGNED-PAYLOAD'

/**
 * The headers that make a request signed: `x-amz-date`, `x-amz-security-token` and, for S3,
 * `x-amz-content-sha256`, then `authorization`. `time` in milliseconds since the epoch; AWS takes a
 * difference of five minutes.
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
  const place = `${day}/${scope.region}/${scope.service}/aws4_request`
  const text = `AWS4-HMAC-SHA256\n${stamp}\n${place}\n${sha256(canonical)}`
  const signature = hmac(signingKey(credentials.secretAccessKey, day, scope), text).toString('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${place}, SignedHeaders=${headers.names}, Signature=${signature}`
  return [...added, ['authorization', authorization]]
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const hmac = (key: Buffer | string, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest()

/** Derived keys by what they were derived from; one day's worth of them. */
const keys = new Map<string, Buffer>()
const mostKeys = 256

function signingKey(secret: string, day: string, { region, service }: SigningScope): Buffer {
  const id = `${day}/${region}/${service}/${secret}`
  let key = keys.get(id)
  if (key === undefined) {
    const ofRegion = hmac(hmac(`AWS4${secret}`, day), region)
    key = hmac(hmac(ofRegion, service), 'aws4_request')
    if (keys.size >= mostKeys) keys.clear()
    keys.set(id, key)
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

/** The path that is sent, encoded once more, without empty and dot segments (RFC 3986 5.2.4). */
function canonicalPath(path: string): string {
  const kept: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  const isFolder = kept.length > 0 && path.endsWith('/')
  return `/${kept.map(encode).join('/')}${isFolder ? '/' : ''}`
}

/** Keys of S3 are any text: nothing is removed, and the encoding is that of the key. */
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

/** Percent-encoding of all but the unreserved characters (RFC 3986 2.3). Latin-1 text is bytes. */
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

/** What percent-encoding stands for, as Latin-1 text; what is no encoding stays as it is. */
function decode(text: string): string {
  return text.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
}
