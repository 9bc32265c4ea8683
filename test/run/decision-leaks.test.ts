import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { recordsIn } from '../support/decision-records.ts'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { useFixture, useFolder, useUpstream } from '../support/fixture.ts'
import { freePort, type GatewayOptions, startGateway } from '../support/gateway.ts'
import { send, type TestRequest } from '../support/http-client.ts'
import { keySetOf, sign, signingKey } from '../support/identity-provider.ts'
import {
  aiBackend,
  gateway,
  hostOf,
  httpRoute,
  mcpBackend,
  policy,
  routeByHost,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startMcpItemsServer } from '../support/mcp-items-server.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { startOAuthServer } from '../support/oauth-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { completes, failsA, startVendorA } from '../support/vendors/vendor-a.ts'
import { says, startVendorC } from '../support/vendors/vendor-c.ts'

type Fields = Readonly<Record<string, unknown>>

const secrets = new Set<string>()
/** Secrets that the access log may contain. */
const logged = new Set<string>()
/** A text that nothing else contains, and that no record may contain. */
function canary(label: string): string {
  const text = `canary-${secrets.size}-${label.replaceAll(/[^a-z]/gi, '')}`
  secrets.add(text)
  return text
}
/** A text that no record may contain, but that is no credential by its name. */
function unlogged(label: string): string {
  const text = canary(label)
  logged.add(text)
  return text
}
/** Keeps a credential that was made otherwise: its parts that cannot be guessed. */
function hidden(text: string): string {
  for (const part of text.split(/[.:; ]/)) if (part.length > 15) secrets.add(part)
  return text
}
const base64 = (text: string) => hidden(Buffer.from(text).toString('base64').replaceAll('=', ''))

const headerForms: readonly (readonly [name: string, form: (text: string) => string])[] = [
  ['authorization', (text) => `Bearer ${text}`],
  ['authorization', (text) => `Basic ${base64(`ann:${text}`)}`],
  ['authorization', (text) => `Digest username="ann", response="${text}"`],
  [
    'authorization',
    (text) => `AWS4-HMAC-SHA256 Credential=AKIA/x, SignedHeaders=host, Signature=${text}`,
  ],
  ['authorization', (text) => text],
  ['cookie', (text) => `a=b; session=${text}`],
  ...[
    'proxy-authorization',
    'cookie2',
    'x-api-key',
    'api-key',
    'x-goog-api-key',
    'ocp-apim-subscription-key',
    'x-functions-key',
    'x-amz-security-token',
    'x-auth-token',
    'x-access-token',
    'x-id-token',
    'x-refresh-token',
    'x-session-token',
    'x-client-secret',
    'x-jwt-assertion',
    'helicone-auth',
    'password',
    'token',
    'jwt',
    'x-custom-secret',
    'mcp-session-id',
  ].map((name) => [name, (text: string) => text] as const),
  ['sec-websocket-protocol', (text) => `realtime, openai-insecure-api-key.${text}`],
]

const parameters = [
  'api_key',
  'apikey',
  'API-KEY',
  'access_token',
  'id_token',
  'refresh_token',
  'token',
  'sig',
  'signature',
  'password',
  'client_secret',
  'X-Amz-Signature',
  'X-Amz-Security-Token',
  'X-Goog-Signature',
  'api%5Fkey',
  'custom_param',
]

const key = await signingKey('one')
const claims = { iss: 'https://idp', sub: 'ann' }
const good = hidden(await sign(key, claims))
const bad = `${good.slice(0, -8)}${'A'.repeat(8)}`
const upstream = useUpstream()
const model = useFixture(startVendorA)
const failing = useFixture(startVendorA)
const converted = useFixture(() => startVendorC())
const items = useFixture(() => startMcpItemsServer({ tools: ['search'], resources: ['n://a'] }))
const idp = useFixture(() => startOAuthServer({ kind: 'IdpB' }))
const extAuth = useFixture(startExtAuthServer)
const validKey = canary('valid-key')
const validPassword = canary('valid-password')

/** Name of a route -> its policies. The rules refer to credentials, which must not make them recorded. */
const policies: Readonly<Record<string, Fields>> = {
  open: {},
  keys: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
  users: { basicAuthentication: { secretRef: { name: 'users' } } },
  tokens: {
    jwtAuthentication: {
      providers: [{ issuer: 'https://idp', jwks: { inline: JSON.stringify(keySetOf(key)) } }],
    },
  },
  permissive: {
    jwtAuthentication: {
      mode: 'Permissive',
      providers: [{ issuer: 'https://idp', jwks: { inline: JSON.stringify(keySetOf(key)) } }],
    },
  },
  rules: {
    authorization: {
      action: 'Deny',
      policy: {
        matchExpressions: [
          'request.headers.authorization == "Bearer x" || request.headers["x-api-key"] == "x"',
          'request.headers.cookie("session") == "x" || request.headers["x-custom-secret"] == "x"',
          'request.uri.query("token") == ["x"] || request.headers["x-team"] == "red"',
        ],
      },
    },
  },
  failing: {
    authorization: {
      action: 'Deny',
      policy: { matchExpressions: ['fail(string(request.headers))'] },
    },
  },
  'ext-http': { extAuth: { backendRef: toBackend('main'), http: {} } },
  'ext-grpc': { extAuth: { backendRef: toBackend('ext-auth'), grpc: {} } },
  cross: { csrf: {} },
  changed: {
    transformation: {
      request: { set: [{ name: 'x-copy', value: 'int(request.headers.authorization)' }] },
    },
  },
  limits: {
    rateLimit: {
      global: {
        domain: 'shop',
        backendRef: toBackend('main'),
        descriptors: [{ entries: [{ name: 'key', expression: 'request.headers.authorization' }] }],
      },
    },
  },
}
const models = ['model', 'model-keys', 'model-failing', 'model-guarded', 'model-converted']

function manifests(port: number): readonly Fields[] {
  const at = (vendor: { readonly port: number }) => ({ host: '127.0.0.1', port: vendor.port })
  const toModel = { provider: { vendorA: {}, ...at(model) } }
  const promptGuard = {
    request: [{ regex: { builtins: ['Email'] } }],
    response: [{ regex: { matches: ['completion'], action: 'Mask' } }],
  }
  return [
    gateway(port),
    staticBackend('main', upstream.port),
    staticBackend('ext-auth', extAuth.port),
    staticBackend('idp', idp.port),
    secret('keys', { one: validKey }),
    secret('users', { '.htaccess': `ann:${validPassword}` }),
    ...Object.entries(policies).flatMap(([name, traffic]) => [
      routeByHost(name, toBackend('main')),
      ...(Object.keys(traffic).length === 0
        ? []
        : [policy(name, `HTTPRoute/${name}`, { traffic })]),
    ]),
    httpRoute('matched', {
      hostnames: [hostOf('matched')],
      rules: [
        {
          matches: [{ headers: [{ name: 'x-api-key', value: 'x' }] }],
          backendRefs: [toBackend('main')],
        },
      ],
    }),
    ...models.map((name) => routeByHost(name, toBackend(name))),
    aiBackend('model', toModel),
    aiBackend('model-keys', toModel),
    policy('model-keys', 'HTTPRoute/model-keys', { traffic: policies.keys }),
    aiBackend('model-failing', { provider: { vendorA: {}, ...at(failing) } }),
    aiBackend('model-converted', { provider: { vendorC: {}, ...at(converted) } }),
    aiBackend('model-guarded', toModel, { ai: { promptGuard } }),
    ...['mcp', 'mcp-tokens'].flatMap((name) => [
      mcpBackend(name, [{ name: 'items', static: at(items) }]),
      routeByHost(name, toBackend(name)),
    ]),
    policy('mcp', 'GatewayBackend/mcp', {
      backend: {
        mcp: {
          authorization: {
            action: 'Deny',
            policy: { matchExpressions: ['mcp.tool.arguments.secret != ""'] },
          },
        },
      },
    }),
    policy('mcp-tokens', 'GatewayBackend/mcp-tokens', {
      backend: {
        mcp: {
          authentication: {
            issuer: idp.issuer,
            jwks: { jwksPath: idp.keysPath, backendRef: toBackend('idp') },
          },
        },
      },
    }),
  ]
}

const json = { 'content-type': 'application/json' }
const mcpHeaders = { ...json, accept: 'application/json, text/event-stream' }
const rpc = (method: string, params: Fields) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

/** Bodies of model requests, of which some cannot be read. */
const prompts = (): readonly string[] => {
  const ask = (message: unknown, more: Fields = {}) =>
    JSON.stringify({ model: 'm-1', messages: [message], ...more })
  const content = () => `${canary('prompt')} to ann@example.com`
  return [
    ask({ role: 'user', content: content() }),
    ask({ role: 'user', content: content() }, { stream: true }),
    ask({ role: unlogged('role'), content: content() }),
    ask({ role: 'user', content: { [canary('key')]: 1 } }),
    ask({ role: 'user', content: content() }, { encoding_format: canary('format') }),
    ask({ role: 'user', content: content() }, { tools: [{ type: unlogged('tool') }] }),
    `{"model": "m-1", "messages": ${canary('broken')}`,
  ]
}

/** Sends every form of credential to every route. Returns the number of requests. */
async function drive(port: number): Promise<number> {
  let sent = 0
  const ask = async (name: string, request: TestRequest) => {
    sent++
    return send(port, { host: hostOf(name), ...request })
  }
  const plain = [...Object.keys(policies), 'matched', 'absent', ...models, 'mcp', 'mcp-tokens']
  const driveRoute = async (name: string) => {
    const isModel = models.includes(name)
    const path = isModel ? '/v1/models' : '/'
    for (const [header, form] of headerForms) {
      await ask(name, { path, headers: { [header]: form(canary(header)) } })
    }
    for (const parameter of [...parameters, ...(isModel ? ['key'] : [])]) {
      const make = parameter === 'custom_param' ? unlogged : canary
      await ask(name, { path: `${path}?a=1&${parameter}=${make(parameter)}&b=2` })
    }
    for (const token of [good, bad, validKey]) {
      await ask(name, { path, headers: { authorization: `Bearer ${token}` } })
    }
    const authorization = `Basic ${base64(`ann:${validPassword}`)}`
    await ask(name, { path, headers: { authorization } })
    await ask(name, {
      method: 'POST',
      path,
      headers: { origin: 'https://evil.test' },
      body: canary('body'),
    })
  }
  await Promise.all(plain.map(driveRoute))
  for (const name of models) {
    for (const body of prompts()) {
      const headers = { ...json, authorization: `Bearer ${validKey}` }
      await ask(name, { method: 'POST', path: '/v1/chat/completions', headers, body })
    }
  }
  const token = hidden(await idp.token())
  for (const name of ['mcp', 'mcp-tokens']) {
    const headers = { ...mcpHeaders, authorization: `Bearer ${token}` }
    const post = (body: string, more: Readonly<Record<string, string>> = {}) =>
      ask(name, { method: 'POST', headers: { ...headers, ...more }, body })
    const hello = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 't', version: '1' },
    }
    const begun = await post(rpc('initialize', hello))
    const session = { 'mcp-session-id': hidden(String(begun.headers['mcp-session-id'])) }
    await post(
      rpc('tools/call', { name: 'search', arguments: { secret: canary('argument') } }),
      session,
    )
    await post(rpc('resources/read', { uri: `n://a?token=${unlogged('uri')}` }), session)
    await post(`{"jsonrpc":"2.0","${canary('member')}":1,`, session)
    await post(rpc('tools/list', {}), { 'mcp-protocol-version': canary('version') })
    await ask(name, {
      method: 'POST',
      path: `/?sessionId=${canary('session')}`,
      headers: mcpHeaders,
      body: rpc('ping', {}),
    })
  }
  return sent
}

/** Starts a gateway, sends it everything, and stops it. Returns what it has written to the console. */
async function run(options: Omit<GatewayOptions, 'manifests'>, folder: string) {
  const port = await freePort()
  model.answer = completes(`a ${canary('completion')} for you`)
  converted.answer = says(`a ${canary('completion')} for you`)
  failing.answer = failsA(400, `cannot answer ${canary('provider-error')}`)
  const running = await startGateway({
    ...options,
    manifests: manifests(port),
    args: ['--record', 'all', '--record-dir', folder],
    env: { SLUICE_RECORD_HIDE: 'x-custom-secret,custom_param' },
  })
  const sent = await drive(port)
  await send(port, { host: hostOf('rules'), headers: { 'x-team': 'blue-team' } })
  await running.stop()
  return { sent, console: running.stdout + running.stderr }
}

const leaksIn = (text: string) => [...secrets].filter((text_) => text.includes(text_))

const bytesIn = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')

describe('credentials, prompts and answers', () => {
  const folder = useFolder('sluice-leaks-')
  const written = useFixture(() => run({}, folder))

  it('are in no record', () => {
    expect(recordsIn(folder).size).toBeGreaterThan(500)
    const bytes = bytesIn(folder)
    expect(bytes).toContain('blue-team')
    expect(leaksIn(bytes)).toEqual([])
  })

  it('are not on the console', () => {
    expect(written.console).toContain('http.status=401')
    expect(leaksIn(written.console).filter((text) => !logged.has(text))).toEqual([])
  })
})

describeWithParts(['nats-server'], 'credentials, prompts and answers', () => {
  const folder = useFolder('sluice-leaks-')
  const server = useFixture(startNatsServer, (started) => started.remove())
  const written = useFixture(() => run({ nats: server.url }, folder))

  it('are in no stream of the NATS server', () => {
    expect(written.sent).toBeGreaterThan(500)
    const bytes = bytesIn(server.folder)
    expect(bytes).toContain('blue-team')
    expect(leaksIn(bytes)).toEqual([])
  })
})
