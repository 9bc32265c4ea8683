import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Environment } from '../access-token.ts'
import { credentialChain } from './credential-chain.ts'

/** Plays the credential services of AWS on the loopback address. */
let server: Server
let base: string
let folder: string
let requests: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[]
const hour = 3_600_000
const start = Date.UTC(2026, 0, 1)
let expiration = start + hour

const asJson = (id: string) =>
  JSON.stringify({
    AccessKeyId: id,
    SecretAccessKey: 'secret',
    Token: 'token',
    Expiration: new Date(expiration).toISOString(),
  })

function answer(method: string, url: string, headers: IncomingMessage['headers']): string | number {
  if (url === '/latest/api/token') return method === 'PUT' ? 'session' : 405
  if (url.startsWith('/latest/') && headers['x-aws-ec2-metadata-token'] !== 'session') return 401
  if (url === '/latest/meta-data/iam/security-credentials/') return 'the-role\n'
  if (url === '/latest/meta-data/iam/security-credentials/the-role') return asJson('INSTANCE')
  if (url === '/pod') return headers.authorization === 'pod-token' ? asJson('POD') : 401
  if (url === '/sts') {
    const time = new Date(expiration).toISOString()
    return `<R><Credentials><AccessKeyId>WEB</AccessKeyId><SecretAccessKey>a&amp;b</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${time}</Expiration></Credentials></R>`
  }
  return 404
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-aws-'))
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      requests.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
      const found = answer(method, url, headers)
      response.writeHead(typeof found === 'number' ? found : 200)
      response.end(typeof found === 'number' ? '' : found)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

beforeEach(() => {
  requests = []
  expiration = start + hour
})

afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** Without the machine's own files and metadata. */
const bare: Environment = { HOME: '/nonexistent', AWS_EC2_METADATA_DISABLED: 'true' }
const found = (env: Environment) => credentialChain({ ...bare, ...env }, () => start).get()

describe('the AWS credential chain', () => {
  it('uses the environment variables first', async () => {
    const env = { AWS_ACCESS_KEY_ID: 'ENV', AWS_SECRET_ACCESS_KEY: 's', AWS_SESSION_TOKEN: 't' }
    expect(await found(env)).toEqual({
      accessKeyId: 'ENV',
      secretAccessKey: 's',
      sessionToken: 't',
    })
  })

  it('then uses the shared files, by profile', async () => {
    const credentials = file(
      'credentials',
      '[default]\naws_access_key_id = FILE\naws_secret_access_key = a=b\n# a comment\n[other]\naws_access_key_id=OTHER\naws_secret_access_key=c\n',
    )
    const config = file(
      'config',
      '[profile third]\nregion = eu-west-1\naws_access_key_id = THIRD\naws_secret_access_key = d\n[profile role]\nrole_arn = arn:x\n',
    )
    const env = { AWS_SHARED_CREDENTIALS_FILE: credentials, AWS_CONFIG_FILE: config }
    expect(await found(env)).toEqual({ accessKeyId: 'FILE', secretAccessKey: 'a=b' })
    expect(await found({ ...env, AWS_PROFILE: 'other' })).toMatchObject({ accessKeyId: 'OTHER' })
    expect(await found({ ...env, AWS_PROFILE: 'third' })).toMatchObject({ accessKeyId: 'THIRD' })
    await expect(found({ ...env, AWS_PROFILE: 'role' })).rejects.toThrow(
      'role_arn of the AWS profile',
    )
    await expect(found({ ...env, AWS_PROFILE: 'absent' })).rejects.toThrow(
      'AWS profile absent not found or without keys',
    )
  })

  it('assumes a role with the token of a service account', async () => {
    const env = {
      AWS_WEB_IDENTITY_TOKEN_FILE: file('token', 'a.b.c\n'),
      AWS_ROLE_ARN: 'arn:aws:iam::1:role/x',
      AWS_ENDPOINT_URL_STS: `${base}/sts`,
    }
    expect(await found(env)).toEqual({
      accessKeyId: 'WEB',
      secretAccessKey: 'a&b',
      sessionToken: 't',
      expiresAt: expiration,
    })
    const [request] = requests
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toMatchObject({
      Action: 'AssumeRoleWithWebIdentity',
      RoleArn: 'arn:aws:iam::1:role/x',
      WebIdentityToken: 'a.b.c',
    })
  })

  it('uses plaintext only for the credential service of a container', async () => {
    const env = {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${base}/pod`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file('pod', 'pod-token\n'),
    }
    expect(await found(env)).toMatchObject({ accessKeyId: 'POD', sessionToken: 'token' })
    const elsewhere = { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://attacker.example/pod' }
    await expect(found(elsewhere)).rejects.toThrow('must be https')
  })

  it('uses the role of the instance last, with a session token', async () => {
    const env = { AWS_EC2_METADATA_DISABLED: '', AWS_EC2_METADATA_SERVICE_ENDPOINT: base }
    expect(await found(env)).toMatchObject({ accessKeyId: 'INSTANCE', expiresAt: expiration })
    expect(requests[0]).toMatchObject({ method: 'PUT', url: '/latest/api/token' })
  })

  it('returns nothing if nothing is configured', async () => {
    expect(await found({})).toBe(undefined)
  })

  it('caches credentials, and renews them once in the background before they expire', async () => {
    let now = start
    const env = { ...bare, AWS_EC2_METADATA_DISABLED: '', AWS_EC2_METADATA_SERVICE_ENDPOINT: base }
    const chain = credentialChain(env, () => now)
    const [first, same] = await Promise.all([chain.get(), chain.get()])
    expect(same).toBe(first)
    expect(requests).toHaveLength(3)
    now = start + hour - 300_001
    expect(chain.get()).toBe(first)
    expiration = start + 2 * hour
    now = start + hour - 299_999
    expect(chain.get()).toBe(first)
    await expect.poll(() => chain.get()).toMatchObject({ expiresAt: start + 2 * hour })
    expect(requests).toHaveLength(6)
  })
})
