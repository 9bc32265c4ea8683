/** Credentials of clouds for backends of every kind: roles of AWS, tokens of Microsoft Entra and of Google. */

import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { useFolder, useGateway, useListening, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  gateway,
  hostOf,
  manifest,
  policy,
  routeByHost,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { serviceAccountOf } from '../support/token-server.ts'
import type { ReceivedRequest } from '../support/upstream.ts'

const issuer = 'https://idp.example.com'
const port = await freePort()
const users = await signingKey('users')
const upstream = useUpstream()
const folder = useFolder('sluice-clouds-')

interface CloudCall {
  readonly url: URL
  readonly headers: IncomingMessage['headers']
  readonly form: URLSearchParams
}
const calls: CloudCall[] = []
let isDown = false

const later = () => new Date(Date.now() + 3_600_000).toISOString()

/** Keys that name the session for which they were issued. */
function assumedRole({ headers, form }: CloudCall): string | number {
  const isSigned = /^AWS4-HMAC-SHA256 Credential=AKIDOWN\/\d{8}\/eu-west-3\/sts\/aws4_request,/
  if (!isSigned.test(headers.authorization ?? '') || form.get('Action') !== 'AssumeRole') return 403
  if (form.get('RoleArn')?.endsWith('/forbidden')) return 403
  const named = [
    form.get('RoleSessionName'),
    form.get('Tags.member.1.Key'),
    form.get('Tags.member.1.Value'),
  ]
  return `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>AKIDROLE</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey><SessionToken>${named.join('|')}</SessionToken><Expiration>${later()}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`
}

/** An ID token for an audience. Its signature is not checked by the gateway. */
const idToken = (audience: string | null) =>
  ['{}', JSON.stringify({ aud: audience, exp: Math.floor(Date.now() / 1_000) + 600 }), 'x']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.')

function answer(call: CloudCall): object | string | number {
  const { url, headers, form } = call
  if (isDown) return 503
  switch (url.pathname) {
    case '/sts/':
      return assumedRole(call)
    case '/tenant-1/oauth2/v2.0/token': {
      const proof = form.get('client_secret') ?? form.get('client_assertion')
      return { access_token: `entra.${form.get('scope')}.${proof}`, expires_in: 3_600 }
    }
    case '/metadata/identity/oauth2/token': {
      const { searchParams: query } = url
      const identity = query.get('msi_res_id') ?? query.get('client_id')
      return headers.metadata === 'true'
        ? { access_token: `machine.${query.get('resource')}.${identity}`, expires_in: 3_600 }
        : 400
    }
    case '/computeMetadata/v1/instance/service-accounts/default/identity':
      return headers['metadata-flavor'] === 'Google'
        ? idToken(url.searchParams.get('audience'))
        : 403
    case '/computeMetadata/v1/instance/service-accounts/default/token':
      return { access_token: 'google-machine', expires_in: 3_600 }
    case '/google/token': {
      const claims = form.get('assertion')?.split('.')[1] ?? ''
      const { target_audience } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as {
        target_audience?: string
      }
      return target_audience
        ? { id_token: idToken(target_audience) }
        : { access_token: 'google-file', expires_in: 3_600 }
    }
    default:
      return 404
  }
}

const cloud = useListening(
  createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece) => {
      text += piece
    })
    request.on('end', () => {
      const url = new URL(request.url ?? '', 'http://cloud')
      const call = { url, headers: request.headers, form: new URLSearchParams(text) }
      calls.push(call)
      const found = answer(call)
      response.writeHead(typeof found === 'number' ? found : 200)
      response.end(typeof found === 'object' ? JSON.stringify(found) : String(found))
    })
  }),
)
beforeEach(() => {
  calls.length = 0
  isDown = false
  upstream.forget()
})

const reached = (name: string, auth: object) => [
  staticBackend(name, upstream.port, { auth }),
  routeByHost(name, toBackend(name)),
  policy(name, `HTTPRoute/${name}`, {
    traffic: {
      jwtAuthentication: {
        mode: 'Optional',
        providers: [{ issuer, jwks: { inline: JSON.stringify(keySetOf(users)) } }],
      },
    },
  }),
]
const role = (name: string) => `arn:aws:iam::123456789012:role/${name}`

const running = useGateway(() => {
  const base = `http://127.0.0.1:${cloud.port}`
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, 'of-the-cluster\n')
  return {
    env: {
      AWS_REGION: 'eu-west-3',
      AWS_ACCESS_KEY_ID: 'AKIDOWN',
      AWS_SECRET_ACCESS_KEY: 'own-secret',
      AWS_ENDPOINT_URL_STS: `${base}/sts/`,
      AZURE_AUTHORITY_HOST: base,
      AZURE_TENANT_ID: 'tenant-1',
      AZURE_CLIENT_ID: 'client-1',
      AZURE_FEDERATED_TOKEN_FILE: tokenFile,
      AZURE_POD_IDENTITY_AUTHORITY_HOST: base,
      GCE_METADATA_HOST: `127.0.0.1:${cloud.port}`,
      CLOUDSDK_CONFIG: folder,
    },
    manifests: {
      'all.yaml': manifest(
        gateway(port),
        secret('entra', { clientID: 'app', tenantID: 'tenant-1', clientSecret: 'entra-secret' }),
        secret('google', { 'credentials.json': JSON.stringify(serviceAccountOf(base)) }),
        ...reached('role', {
          aws: {
            assumeRole: {
              roleArn: role('reader'),
              sessionNameExpression: 'jwt.sub',
              tags: [{ key: 'team', expression: 'jwt.team' }],
            },
            serviceName: 'orders',
            region: 'us-west-2',
          },
        }),
        ...reached('forbidden', { aws: { assumeRole: { roleArn: role('forbidden') } } }),
        ...reached('down', { aws: { assumeRole: { roleArn: role('down') } } }),
        ...reached('secret', { azure: { secretRef: { name: 'entra' }, resource: 'api://orders' } }),
        ...reached('workload', { azure: { workloadIdentity: {}, resource: 'api://orders' } }),
        ...reached('machine', {
          azure: { managedIdentity: { resourceId: '/sub/1' }, resource: 'api://orders' },
        }),
        ...reached('google', { gcp: {} }),
        ...reached('google-id', { gcp: { type: 'IdToken' } }),
        ...reached('google-file', { gcp: { secretRef: { name: 'google' } } }),
        ...reached('google-file-id', {
          gcp: {
            type: 'IdToken',
            audience: 'https://run.example.com',
            secretRef: { name: 'google' },
          },
        }),
        ...reached('no-entry', { azure: { secretRef: { name: 'google' } } }),
      ),
    },
  }
})

const tokenOf = (claims: object) => sign(users, { iss: issuer, ...claims })
const send = (name: string, token?: string) =>
  running.send(port, {
    host: hostOf(name),
    ...(token && { headers: { authorization: `Bearer ${token}` } }),
  })
async function received(name: string, token?: string): Promise<ReceivedRequest['headers']> {
  const response = await send(name, token)
  expect([name, response.status, response.body]).toEqual([name, 200, expect.anything()])
  return (JSON.parse(response.body) as ReceivedRequest).headers
}

describe('roles of AWS [AwsAuth.assumeRole]', () => {
  it('[AwsAssumeRole.sessionNameExpression] [AwsAssumeRole.tags] are assumed once for each user, in a session that names the user', async () => {
    const requests = ['ann', 'bob', 'ann', 'bob']
    for (const sub of requests) {
      const headers = await received('role', await tokenOf({ sub, team: `team of ${sub}` }))
      expect(headers['x-amz-security-token']).toBe(`${sub}|team|team of ${sub}`)
      expect(headers.authorization).toMatch(
        /^AWS4-HMAC-SHA256 Credential=AKIDROLE\/\d{8}\/us-west-2\/orders\/aws4_request/,
      )
    }
    expect(calls.map(({ form }) => form.get('RoleSessionName'))).toEqual(['ann', 'bob'])
  })

  it('refuses a request for which the name or a tag is not valid', async () => {
    for (const claims of [
      { sub: 'a b', team: 'x' },
      { sub: 'ann' },
      { sub: 'ann', team: 'a;b' },
      { sub: 'x', team: 'x' },
    ]) {
      expect([claims, (await send('role', await tokenOf(claims))).status]).toEqual([claims, 403])
    }
    expect((await send('role')).status).toBe(403)
    expect(calls).toEqual([])
    expect(upstream.received).toEqual([])
  })

  it('sends nothing if the role cannot be assumed', async () => {
    expect((await send('forbidden')).status).toBe(500)
    isDown = true
    expect((await send('down')).status).toBe(503)
    expect(upstream.received).toEqual([])
  })
})

describe('tokens of Microsoft Entra [BackendAuth.azure]', () => {
  it('[AzureAuth.secretRef] [AzureAuth.workloadIdentity] [AzureAuth.managedIdentity] are of the configured source and resource', async () => {
    expect((await received('secret')).authorization).toBe(
      'Bearer entra.api://orders/.default.entra-secret',
    )
    expect((await received('workload')).authorization).toBe(
      'Bearer entra.api://orders/.default.of-the-cluster',
    )
    expect((await received('machine')).authorization).toBe('Bearer machine.api://orders./sub/1')
  })

  it('need every entry of the Secret', async () => {
    const { message } = await running.condition('GatewayBackend', 'no-entry', 'Accepted', 'False')
    expect(message).toContain('azure.secretRef: Secret default/google has no entry clientID')
    expect((await send('no-entry')).status).toBe(500)
  })
})

describe('tokens of Google [BackendAuth.gcp]', () => {
  const audienceOf = ({ authorization }: ReceivedRequest['headers']) =>
    (
      JSON.parse(
        Buffer.from(String(authorization).split('.')[1] ?? '', 'base64url').toString(),
      ) as { aud: string }
    ).aud

  it('[GcpAuth.type] [GcpAuth.secretRef] are access tokens, or ID tokens for the host or an audience', async () => {
    expect((await received('google')).authorization).toBe('Bearer google-machine')
    expect((await received('google-file')).authorization).toBe('Bearer google-file')
    expect(audienceOf(await received('google-id'))).toBe('https://google-id.example.com')
    expect(audienceOf(await received('google-file-id'))).toBe('https://run.example.com')
  })
})
