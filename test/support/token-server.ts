/** Plays the credential and token services of three clouds on the loopback address. */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface TokenCall {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly form: Readonly<Record<string, string>>
}

export interface TokenServer {
  readonly base: string
  readonly calls: TokenCall[]
  /** Seconds that tokens hold from now on. */
  seconds: number
  /** Everything is answered 503 while it is set. */
  isDown: boolean
  close(): Promise<void>
}

type Served = object | number | undefined

const awsKeys = (until: string) => ({
  AccessKeyId: 'AKIDEXAMPLE',
  SecretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  Token: 'session-token',
  Expiration: until,
})

/** The service account that the server knows; its file names the server as token service. */
export function serviceAccountOf(base: string) {
  const file = {
    type: 'service_account',
    project_id: 'my-project',
    private_key_id: 'key-1',
    private_key: serviceAccountKey.privateKey,
    client_email: 'gateway@my-project.iam.gserviceaccount.com',
    token_uri: `${base}/google/token`,
  }
  return file
}

const serviceAccountKey = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
})

/** What the token service of Google refuses of an assertion (RFC 7523 3). */
function isAssertion(assertion: string, audience: string): boolean {
  const [head = '', claims = '', signature = ''] = assertion.split('.')
  const key = createPublicKey(serviceAccountKey.publicKey)
  const signed = Buffer.from(`${head}.${claims}`)
  if (!verify('RSA-SHA256', signed, key, Buffer.from(signature, 'base64url'))) return false
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as never
  const { alg, kid } = read(head) as { alg: string; kid: string }
  const { iss, scope, aud, iat = 0, exp = 0 } = read(claims) as Record<string, number | string>
  if (alg !== 'RS256' || kid !== 'key-1' || aud !== audience) return false
  if (!String(iss).startsWith('gateway@')) return false
  return String(scope).endsWith('/auth/cloud-platform') && Number(exp) - Number(iat) <= 3_600
}

function google({ form, headers, path }: TokenCall, base: string, seconds: number): Served {
  const token = (name: string) => ({
    access_token: name,
    expires_in: seconds,
    token_type: 'Bearer',
  })
  if (path.startsWith('/computeMetadata/v1/instance/service-accounts/default/token')) {
    return headers['metadata-flavor'] === 'Google' ? token('of-the-machine') : 403
  }
  if (path === '/google/sts') {
    return form.subject_token === 'of-the-cluster' ? token('exchanged') : 400
  }
  if (path === '/google/impersonate') {
    if (headers.authorization !== 'Bearer exchanged') return 401
    const expireTime = new Date(Date.now() + seconds * 1_000).toISOString()
    return { accessToken: 'impersonated', expireTime }
  }
  if (path !== '/google/token') return undefined
  if (form.grant_type === 'refresh_token') {
    return form.refresh_token === 'refresh' ? token('of-a-user') : 400
  }
  if (form.grant_type !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return 400
  const isGood = isAssertion(form.assertion ?? '', `${base}/google/token`)
  return isGood ? token('of-the-account') : 400
}

function entra({ form, headers, path }: TokenCall, seconds: number): Served {
  if (path.startsWith('/metadata/identity/oauth2/token?')) {
    const { searchParams } = new URL(path, 'http://machine')
    if (headers.metadata !== 'true') return 400
    if (searchParams.get('resource') !== 'https://cognitiveservices.azure.com') return 400
    // The service of machines writes numbers as texts.
    return { access_token: 'eyJm.eyJz.machine', expires_in: String(seconds) }
  }
  if (path.startsWith('/app?')) {
    if (headers['x-identity-header'] !== 'app-secret') return 401
    const until = Math.floor(Date.now() / 1_000) + seconds
    return { access_token: 'eyJh.eyJz.app', expires_on: String(until) }
  }
  if (path !== '/tenant/oauth2/v2.0/token') return undefined
  if (form.scope !== 'https://cognitiveservices.azure.com/.default') return 400
  const isSecret = form.client_secret === 'client-secret'
  const isFederated = form.client_assertion === 'of-the-cluster'
  if (!isSecret && !isFederated) return 401
  const name = isSecret ? 'secret' : 'workload'
  return { access_token: `eyJh.eyJz.${name}`, expires_in: seconds, token_type: 'Bearer' }
}

function aws({ method, headers, path }: TokenCall, seconds: number): Served {
  const until = new Date(Date.now() + seconds * 1_000).toISOString()
  if (path === '/pod') return headers.authorization === 'pod-token' ? awsKeys(until) : 401
  if (!path.startsWith('/latest/')) return undefined
  if (path === '/latest/api/token') return method === 'PUT' ? { session: 1 } : 405
  return path.endsWith('/the-role') ? awsKeys(until) : 404
}

export async function startTokenServer(): Promise<TokenServer> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()))
      const call = { method, path, headers, form }
      self.calls.push(call)
      const { base, seconds, isDown } = self
      const found = isDown
        ? 503
        : (google(call, base, seconds) ?? entra(call, seconds) ?? aws(call, seconds) ?? 404)
      response.writeHead(typeof found === 'number' ? found : 200, {
        'content-type': 'application/json',
      })
      response.end(typeof found === 'number' ? '{"error":"refused"}' : JSON.stringify(found))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const self: TokenServer = {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: [],
    seconds: 3_600,
    isDown: false,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return self
}
