import { createHash, createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { allConditions, freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import {
  gateway,
  hostOf,
  manifest,
  policy,
  routeByHost,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

let failures = 0

const inlineKey = 'sk-inline-4711'
const storedKey = 'stored-0815'
const accessKey = 'AKIDTESTTESTTEST'
const secretKey = 'aws/secret+4242'

function secret(name: string, stringData: Readonly<Record<string, string>>) {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData }
}

const reached = (
  name: string,
  auth: object,
  to = upstream,
  more: Readonly<Record<string, unknown>> = {},
) => [staticBackend(name, to.port, { auth }), routeByHost(name, toBackend(name), more)]

const send = (name: string, more: TestRequest = {}) =>
  running.send(port, { host: hostOf(name), ...more })

async function received(name: string, more: TestRequest = {}): Promise<ReceivedRequest> {
  const response = await send(name, more)
  expect(response.status).toBe(200)
  return JSON.parse(response.body) as ReceivedRequest
}

const apiKeys = { apiKeyAuthentication: { secretRef: { name: 'clients' } } }

const port = await freePort()
const stats = `127.0.0.1:${await freePort()}`
const upstream = useUpstream('main')
const shadow = useUpstream('shadow')
const flaky = useUpstream('flaky', (request, response) => {
  response.writeHead(failures-- > 0 ? 503 : 200)
  response.end(JSON.stringify(request))
})
const running = useGateway(() => ({
  args: ['--stats-address', stats],
  env: {
    AWS_REGION: 'eu-west-3',
    AWS_ACCESS_KEY_ID: 'AKIDENVIRONMENT',
    AWS_SECRET_ACCESS_KEY: 'environment+4242',
  },
  manifests: {
    'all.yaml': manifest(
      gateway(port),
      secret('bare', { Authorization: `${storedKey}\n` }),
      secret('schemed', { Authorization: 'Basic dXNlcjpwYXNz' }),
      secret('wrong', { authorization: 'x' }),
      secret('clients', { robot: 'client-key-1' }),
      secret('aws', { accessKey, secretKey }),
      secret('aws-session', { accessKey, secretKey, sessionToken: 'session-1' }),
      secret('aws-half', { accessKey }),
      ...reached('inline', { key: inlineKey }),
      ...reached('inline-schemed', { key: 'Token abc' }),
      secret('odd', { token: 'odd-4711', Authorization: 'other' }),
      ...reached('stored-key', { secretRef: { name: 'odd', key: 'token' } }),
      ...reached('bad-key', { secretRef: { name: 'odd', key: 'tokens' } }),
      ...reached('stored', { secretRef: { name: 'bare' } }),
      ...reached('stored-schemed', { secretRef: { name: 'schemed' } }),
      ...reached('restored', { passthrough: {} }),
      policy('restored', 'HTTPRoute/restored', { traffic: apiKeys }),
      ...reached('nothing-to-restore', { passthrough: {} }),
      ...reached('aws', { aws: { secretRef: { name: 'aws' } } }),
      ...reached('aws-default', { aws: {} }),
      ...reached('aws-session', { aws: { secretRef: { name: 'aws-session' } } }),
      ...reached('aws-again', { aws: { secretRef: { name: 'aws' } } }, flaky, {
        retry: { codes: [503], attempts: 2 },
      }),
      ...reached('bad-secret', { secretRef: { name: 'absent' } }),
      ...reached('bad-entry', { secretRef: { name: 'wrong' } }),
      ...reached('bad-aws', { aws: { secretRef: { name: 'aws-half' } } }),
      staticBackend('targeted', upstream.port),
      routeByHost('targeted', toBackend('targeted')),
      policy('targeted', 'GatewayBackend/targeted', {
        backend: { auth: { secretRef: { name: 'bare' } } },
      }),
      staticBackend('shadow', shadow.port),
      ...reached('mirrored', { key: inlineKey }, upstream, {
        filters: [
          {
            type: 'RequestMirror',
            requestMirror: {
              backendRef: { group: 'sluice.dev', kind: 'GatewayBackend', name: 'shadow' },
            },
          },
        ],
      }),
    ),
    'rotating.yaml': manifest(
      secret('rotating', { Authorization: 'old' }),
      ...reached('rotating', { secretRef: { name: 'rotating' } }),
    ),
  },
}))

describe('credentials for backends', () => {
  it('[BackendAuth.key] sends an inline key, prefixed with Bearer if it has no scheme', async () => {
    const { headers } = await received('inline', { headers: { authorization: 'Bearer mine' } })
    expect(headers.authorization).toBe(`Bearer ${inlineKey}`)
    const schemed = await received('inline-schemed')
    expect(schemed.headers.authorization).toBe('Token abc')
  })

  it('[BackendAuth.secretRef] sends the value of an entry of a Secret, by default Authorization', async () => {
    expect((await received('stored')).headers.authorization).toBe(`Bearer ${storedKey}`)
    expect((await received('stored-key')).headers.authorization).toBe('Bearer odd-4711')
    expect((await send('bad-key')).status).toBe(500)
    const schemed = await received('stored-schemed')
    expect(schemed.headers.authorization).toBe('Basic dXNlcjpwYXNz')
    expect((await received('targeted')).headers.authorization).toBe(`Bearer ${storedKey}`)
  })

  it('uses a changed credential without a restart', async () => {
    expect((await received('rotating')).headers.authorization).toBe('Bearer old')
    running.write(
      'rotating.yaml',
      manifest(
        secret('rotating', { Authorization: 'new' }),
        ...reached('rotating', { secretRef: { name: 'rotating' } }),
      ),
    )
    await running.sendUntil(port, { host: hostOf('rotating') }, ({ body }) =>
      body.includes('Bearer new'),
    )
  })

  it('[BackendAuth.passthrough] passthrough restores the token that an authentication policy removed', async () => {
    const headers = { authorization: 'Bearer client-key-1' }
    const { headers: seen } = await received('restored', { headers })
    expect(seen.authorization).toBe('Bearer client-key-1')
    expect((await send('restored')).status).toBe(401)
  })

  it('[BackendAuth.passthrough.noAuth] passthrough changes nothing if no policy checks credentials', async () => {
    const headers = { authorization: 'Bearer anything' }
    expect((await received('nothing-to-restore', { headers })).headers.authorization).toBe(
      'Bearer anything',
    )
    expect((await received('nothing-to-restore')).headers.authorization).toBeUndefined()
  })

  it('does not send the credential to mirrors', async () => {
    expect((await received('mirrored')).headers.authorization).toBe(`Bearer ${inlineKey}`)
    const [copy] = await waitFor('the mirror', () => shadow.received.length > 0 && shadow.received)
    expect(copy?.headers.authorization).toBeUndefined()
  })
})

/** What the signature must be, by the definition of AWS, from what was received. */
function expectedSignature({ method, path, headers, body }: ReceivedRequest): string {
  const { authorization = '' } = headers
  const [, day, region, service, names] =
    /Credential=[^/]+\/(\d+)\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+),/.exec(
      String(authorization),
    ) ?? []
  const [target = '', query = ''] = path.split('?')
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const signed = (names ?? '').split(';').map((name) => `${name}:${headers[name]}\n`)
  const canonical = [method, target, query, signed.join(''), names, hash(body)].join('\n')
  const place = `${day}/${region}/${service}/aws4_request`
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], place, hash(canonical)].join('\n')
  const mac = (key: Buffer | string, data: string) =>
    createHmac('sha256', key).update(data).digest()
  const key = [day, region, service, 'aws4_request'].reduce<Buffer | string>(
    (derived, part) => mac(derived, part ?? ''),
    `AWS4${secretKey}`,
  )
  return mac(key, text).toString('hex')
}

describe('AWS signatures', () => {
  it('[BackendAuth.aws] signs requests with the credentials of its environment if no Secret is named', async () => {
    const { headers } = await received('aws-default', { headers: { authorization: 'Bearer mine' } })
    expect(headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDENVIRONMENT\/\d+\/eu-west-3\/execute-api\/aws4_request, /,
    )
  })

  it('[BackendAuth.aws] [AwsAuth.secretRef] signs requests with the keys of a Secret, bodies included', async () => {
    const request = await received('aws', {
      method: 'POST',
      path: '/model/x?b=2&a=1',
      body: '{"prompt":"hi"}',
      headers: { 'content-type': 'application/json', 'x-amz-date': 'forged', 'x-amz-target': 'T' },
    })
    const authorization = String(request.headers.authorization)
    expect(authorization).toContain(`Credential=${accessKey}/`)
    expect(authorization).toContain('/eu-west-3/execute-api/aws4_request')
    expect(authorization).toContain('SignedHeaders=content-type;host;x-amz-date;x-amz-target,')
    const sorted = { ...request, path: '/model/x?a=1&b=2' }
    expect(authorization).toMatch(new RegExp(`Signature=${expectedSignature(sorted)}$`))
  })

  it('signs with the session token if the Secret has one', async () => {
    const request = await received('aws-session')
    expect(request.headers['x-amz-security-token']).toBe('session-1')
    const authorization = String(request.headers.authorization)
    expect(authorization).toContain('SignedHeaders=host;x-amz-date;x-amz-security-token,')
    expect(authorization).toMatch(new RegExp(`Signature=${expectedSignature(request)}$`))
  })

  it('signs each retry again', async () => {
    failures = 2
    const request = await received('aws-again', { method: 'PUT', body: 'again' })
    expect(request.headers['x-retry-attempt']).toBe('2')
    for (const attempt of flaky.received) {
      expect(attempt.body).toBe('again')
      const authorization = String(attempt.headers.authorization)
      expect(authorization).toMatch(new RegExp(`Signature=${expectedSignature(attempt)}$`))
    }
  })

  it('refuses a body that is too large to be signed', async () => {
    const body = 'x'.repeat(3_000_000)
    expect((await send('aws', { method: 'POST', body })).status).toBe(413)
  })
})

describe('errors about credentials', () => {
  it.each([
    ['bad-secret', 'spec.policies.auth.secretRef: Secret absent does not exist'],
    ['bad-entry', 'Secret default/wrong has no entry Authorization, only authorization'],
    ['bad-aws', 'aws.secretRef: Secret default/aws-half has no entry secretKey'],
  ])('refuses requests to %s and reports: %s', async (name, message) => {
    const { status, body } = await send(name)
    expect([status, body]).toEqual([
      500,
      'the credential for the backend is missing or cannot be used',
    ])
    const conditions = allConditions(await running.status('GatewayBackend', name))
    const accepted = conditions.find(({ type }) => type === 'Accepted')
    expect(accepted).toMatchObject({ status: 'False' })
    expect(accepted?.message).toContain(message)
  })

  it('never shows a credential in logs, metrics or status', async () => {
    const metrics = await (await fetch(`http://${stats}/metrics`)).text()
    const status = JSON.stringify(await running.status('GatewayBackend', 'inline'))
    const all = running.stdout + running.stderr + metrics + status
    for (const value of [inlineKey, storedKey, secretKey, 'session-1', 'client-key-1']) {
      expect(all).not.toContain(value)
    }
  })
})
