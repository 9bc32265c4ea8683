/** Random configurations: routes, filters, weights, and policies of every kind that decides locally. */
import {
  aiBackend,
  gateway,
  httpRoute,
  type Manifest,
  policy,
  secret,
  service,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../../support/manifests.ts'
import type { Choices } from './choices.ts'

type Fields = Readonly<Record<string, unknown>>

/** What configurations refer to. */
export interface Surroundings {
  readonly port: number
  /** Port of the listeners with TLS. */
  readonly tlsPort: number
  readonly certificate: { readonly certificate: string; readonly key: string }
  readonly upstream: number
  /** Port of a model provider. */
  readonly model: number
  /** A port without a server. */
  readonly nobody: number
  /** Port of a server that allows or refuses requests (extAuth over HTTP). */
  readonly authorizer: number
  readonly keySet: string
  readonly issuer: string
}

export const hosts = ['a.example.com', 'b.example.com', 'c.example.org', 'deep.a.example.com']
const hostnames = ['a.example.com', 'b.example.com', '*.example.com', 'c.example.org']
const paths = ['/', '/one', '/one/two', '/three', '/api']
const headerNames = ['x-team', 'x-version', 'x-flag']
const headerValues = ['a', 'b', 'gold', '2']
const backends = ['main', 'other', 'third', 'byname', 'chat', 'empty', 'missing']

const backendRef = (name: string, more: Fields): Fields =>
  name === 'empty' ? { name, port: 80, ...more } : toBackend(name, more)

/** Expressions of authorization rules. */
const expressions = [
  'request.method == "GET"',
  'request.path.startsWith("/one")',
  'request.headers["x-team"] == "a"',
  'request.headers["x-version"] == "2" || request.method == "POST"',
  'has(request.headers["x-flag"])',
  '"x-flag" in request.headers',
  'source.address == "127.0.0.1"',
  'source.address.startsWith("10.")',
  'request.host == "a.example.com"',
  'request.uri.contains("x=1")',
  'jwt.sub == "ann"',
  'jwt.group == "sales"',
  'apiKey.group == "sales"',
  'basicAuth.username == "ann"',
  'request.headers["user-agent"].startsWith("test")',
  'size(request.headers) > 3',
  'proxy.route.name == "r0"',
  'string(request.body).contains("open")',
]

export function randomConfiguration(choices: Choices, around: Surroundings): readonly Manifest[] {
  const routes = choices.list(1, 4, (at) => randomRoute(choices, at))
  const targets = [
    'Gateway/edge',
    'Gateway/edge#http',
    ...routes.map(({ name }) => `HTTPRoute/${name}`),
  ]
  const policies = choices.list(0, 5, (at) =>
    randomPolicy(choices, `p${at}`, choices.one(targets), around),
  )
  return [
    gateway(around.port, { listeners: listeners(choices, around) }),
    tlsSecret('certificate', around.certificate),
    ...['main', 'other', 'third'].map((name) => staticBackend(name, around.upstream)),
    {
      ...staticBackend('byname', around.upstream),
      spec: { static: { host: 'localhost', port: around.upstream } },
    },
    aiBackend(
      'chat',
      { provider: { vendorA: {}, host: '127.0.0.1', port: around.model } },
      { ai: { promptGuard } },
    ),
    ...service('empty', []),
    staticBackend('authorizer', around.authorizer),
    staticBackend('nobody', around.nobody),
    secret('keys', {
      ann: 'key-of-ann',
      bob: JSON.stringify({ key: 'key-of-bob', metadata: { group: 'sales' } }),
    }),
    ...routes.map(({ manifest }) => manifest),
    ...policies,
  ]
}

const promptGuard = { request: [{ regex: { matches: ['forbidden'], action: 'Reject' } }] }

/** Listeners with and without TLS, for all hosts or for some. */
function listeners(choices: Choices, { port, tlsPort }: Surroundings): Fields[] {
  const http = { port, protocol: 'HTTP' }
  const tls = { mode: 'Terminate', certificateRefs: [{ name: 'certificate' }] }
  const https = { port: tlsPort, protocol: 'HTTPS', tls }
  const split = choices.chance(0.4)
  return [
    { name: 'http', ...http, ...(split && { hostname: '*.example.com' }) },
    ...(split ? [{ name: 'org', ...http, hostname: 'c.example.org' }] : []),
    { name: 'https', ...https, hostname: '*.example.com' },
    { name: 'https-any', ...https },
  ]
}

function randomRoute(choices: Choices, at: number): { name: string; manifest: Manifest } {
  const name = `r${at}`
  const rules = choices.list(1, 3, () => randomRule(choices))
  const spec = {
    rules,
    ...(choices.chance(0.8) && { hostnames: choices.some(hostnames, 1, 2) }),
  }
  return { name, manifest: httpRoute(name, spec) }
}

function randomRule(choices: Choices): Fields {
  const redirects = choices.chance(0.12)
  const refs = choices.some(backends, 1, 3)
  return {
    ...(choices.chance(0.8) && { matches: choices.list(1, 2, () => randomMatch(choices)) }),
    ...(redirects
      ? { filters: [redirect(choices)] }
      : {
          backendRefs: refs.map((name) => backendRef(name, { weight: choices.number(0, 3) })),
          ...(choices.chance(0.4) && { filters: [change(choices)] }),
        }),
  }
}

function randomMatch(choices: Choices): Fields {
  const named = (value: string, name: string) =>
    choices.chance(0.25)
      ? { name, type: 'RegularExpression', value: `^[${value}x]+$` }
      : { name, value }
  return {
    ...(choices.chance(0.8) && { path: pathMatch(choices) }),
    ...(choices.chance(0.2) && { method: choices.one(['GET', 'POST', 'PUT']) }),
    ...(choices.chance(0.35) && {
      headers: [named(choices.one(headerValues), choices.one(headerNames))],
    }),
    ...(choices.chance(0.15) && { queryParams: [named(choices.one(['1', '2']), 'x')] }),
  }
}

function pathMatch(choices: Choices): Fields {
  const type = choices.one(['PathPrefix', 'PathPrefix', 'Exact', 'RegularExpression'])
  return type === 'RegularExpression'
    ? { type, value: choices.one(['/one/[a-z]+', '/.*three', '/api/v[0-9]']) }
    : { type, value: choices.one(paths) }
}

function redirect(choices: Choices): Fields {
  const requestRedirect = {
    statusCode: choices.one([301, 302, 307]),
    ...(choices.chance(0.5) && { hostname: 'moved.example.com' }),
    ...(choices.chance(0.5) && {
      path: { type: 'ReplaceFullPath', replaceFullPath: '/moved' },
    }),
  }
  return { type: 'RequestRedirect', requestRedirect }
}

function change(choices: Choices): Fields {
  return choices.one<Fields>([
    {
      type: 'RequestHeaderModifier',
      requestHeaderModifier: { set: [{ name: 'x-team', value: 'b' }], remove: ['x-flag'] },
    },
    { type: 'URLRewrite', urlRewrite: { hostname: 'inner.example.com' } },
    {
      type: 'URLRewrite',
      urlRewrite: { path: { type: 'ReplaceFullPath', replaceFullPath: '/rewritten' } },
    },
    {
      type: 'ResponseHeaderModifier',
      responseHeaderModifier: { set: [{ name: 'x-answer', value: 'set' }] },
    },
  ])
}

/** Fields that can run before routing. */
const early = new Set([
  'authorization',
  'apiKeyAuthentication',
  'basicAuthentication',
  'jwtAuthentication',
  'extAuth',
  'transformation',
])

function randomPolicy(
  choices: Choices,
  name: string,
  target: string,
  around: Surroundings,
): Manifest {
  const fields = choices.list(1, 2, () => randomField(choices, around))
  const traffic = Object.fromEntries(fields)
  const canBeEarly = target.startsWith('Gateway') && fields.every(([field]) => early.has(field))
  const phase = canBeEarly && choices.chance(0.6) ? { phase: 'PreRouting' } : {}
  return policy(name, target, { traffic: { ...phase, ...traffic } })
}

const kinds: Readonly<Record<string, string>> = {
  globalRateLimit: 'rateLimit',
  responseTransformation: 'transformation',
  responseModifiers: 'headerModifiers',
  extAuthOverGrpc: 'extAuth',
}

function randomField(choices: Choices, around: Surroundings): readonly [string, Fields] {
  const mode = { mode: choices.one(['Strict', 'Optional']) }
  const makers: Readonly<Record<string, () => Fields>> = {
    authorization: () => ({
      action: choices.one(['Allow', 'Deny', 'Require']),
      policy: { matchExpressions: choices.some(expressions, 1, 2) },
    }),
    apiKeyAuthentication: () => ({
      ...mode,
      secretRef: { name: choices.chance(0.9) ? 'keys' : 'no-keys' },
    }),
    basicAuthentication: () => ({ ...mode, users: ['ann:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM='] }),
    jwtAuthentication: () => ({
      mode: choices.one(['Strict', 'Optional', 'Permissive']),
      providers: [{ issuer: around.issuer, jwks: { inline: around.keySet } }],
    }),
    cors: () => ({
      allowOrigins: choices.some(['https://good.example.com', 'https://*.example.net'], 1, 2),
      allowMethods: ['GET', 'PUT'],
    }),
    csrf: () => ({ additionalOrigins: ['https://good.example.com'] }),
    rateLimit: () => ({ local: [{ requests: choices.number(5, 60), unit: 'Hours' }] }),
    transformation: () => ({ request: transformation(choices) }),
    responseTransformation: () => ({
      response: { set: [{ name: 'x-answer', value: '"changed"' }] },
    }),
    responseModifiers: () => ({ response: { set: [{ name: 'x-answer', value: '1' }] } }),
    directResponse: () => ({ status: choices.one([200, 204, 410, 503]), body: 'direct' }),
    globalRateLimit: () => ({
      global: {
        domain: 'd',
        backendRef: toBackend('nobody'),
        descriptors: [{ entries: [{ name: 'team', expression: 'request.headers["x-team"]' }] }],
      },
    }),
    extAuthOverGrpc: () => ({ backendRef: toBackend('nobody'), grpc: {} }),
    extAuth: () => ({
      backendRef: toBackend('authorizer'),
      http: choices.chance(0.5) ? {} : { allowedResponseHeaders: ['x-user'] },
    }),
    timeouts: () => ({ request: '30s' }),
    hostRewrite: () => ({ mode: 'None' }),
    headerModifiers: () => ({ request: { set: [{ name: 'x-version', value: '2' }] } }),
  }
  const field = choices.one(Object.keys(makers))
  return [kinds[field] ?? field, makers[field]?.() ?? {}]
}

function transformation(choices: Choices): Fields {
  const set = (name: string, value: string) => ({ set: [{ name, value }] })
  return choices.one<Fields>([
    set('x-team', '"a"'),
    set('x-version', 'request.headers["x-team"]'),
    set('x-flag', 'jwt.sub'),
    { remove: ['x-flag', 'origin'] },
    { add: [{ name: 'x-team', value: 'request.method' }] },
  ])
}
