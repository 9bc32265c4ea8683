/** Converts the middlewares of a route to filters of its rules and to policies. */
import { isDeepStrictEqual } from 'node:util'
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { byAddress, byHeader, limitOf, reportShared } from '../limits.ts'
import type { RoutePlan } from '../plan.ts'
import { addStatic, parseAddress, quote, sourceIn } from '../targets.ts'
import type { Alternative } from './expression.ts'

/** What the middlewares of one route change. */
export interface RouteScene {
  readonly plan: RoutePlan
  readonly result: Conversion
  /** Each returns the path change for the path that a rule matches; undefined if the path stays the same. */
  readonly pathChanges: ((path: Alternative['path']) => Fields | undefined)[]
  /** Replaces the backend; undefined if requests are not redirected. */
  redirect: Fields | undefined
}

/** Sets a part of the policy, of which a route has one. */
function setTraffic(
  { traffic }: RoutePlan,
  name: string,
  value: unknown,
  field: SourceField,
  kind: 'protection' | 'lost' = 'protection',
): void {
  const before = traffic[name]
  if (before !== undefined && !isDeepStrictEqual(before, value)) {
    field.report(kind, 'replaces another one; a route of Sluice has one of this kind')
  }
  traffic[name] = value
}

type Convert = (field: SourceField, scene: RouteScene) => void

const prefixChange = (prefix: string): Fields => ({
  type: 'ReplacePrefixMatch',
  replacePrefixMatch: prefix,
})
const withoutSlash = (path: string): string => path.replace(/\/+$/, '')

function stripPrefix(field: SourceField, { pathChanges }: RouteScene): void {
  const prefixes = field.texts('prefixes').map(withoutSlash)
  field.ignore('forceSlash')
  pathChanges.push((path) => {
    if (path?.type === 'PathPrefix' && prefixes.includes(withoutSlash(path.value))) {
      return prefixChange('/')
    }
    if (path?.type === 'Exact' && prefixes.includes(withoutSlash(path.value))) {
      return { type: 'ReplaceFullPath', replaceFullPath: '/' }
    }
    const isOther = path !== undefined && !prefixes.some((prefix) => path.value.startsWith(prefix))
    if (isOther) return undefined
    return field.report('route', 'strips a prefix that is not the one that the rule matches')
  })
}

function addPrefix(field: SourceField, { pathChanges }: RouteScene): void {
  const prefix = withoutSlash(field.text('prefix') ?? '')
  pathChanges.push((path = { type: 'PathPrefix', value: '/' }) => {
    const value = `${prefix}${path.value}`
    if (path.type === 'PathPrefix') return prefixChange(value)
    if (path.type === 'Exact') return { type: 'ReplaceFullPath', replaceFullPath: value }
    return field.report('route', 'adds a prefix to paths that a pattern matches')
  })
}

function replacePath(field: SourceField, { pathChanges }: RouteScene): void {
  const path = field.text('path') ?? '/'
  pathChanges.push(() => ({ type: 'ReplaceFullPath', replaceFullPath: path }))
}

function redirectScheme(field: SourceField, scene: RouteScene): void {
  scene.redirect = compact({
    scheme: field.text('scheme'),
    port: field.number('port'),
    statusCode: field.flag('permanent') === true ? 301 : 302,
  })
}

const fixedHeaders: Readonly<Record<string, readonly [name: string, value: string]>> = {
  frameDeny: ['x-frame-options', 'DENY'],
  contentTypeNosniff: ['x-content-type-options', 'nosniff'],
  browserXssFilter: ['x-xss-protection', '1; mode=block'],
}
const namedHeaders: Readonly<Record<string, string>> = {
  contentSecurityPolicy: 'content-security-policy',
  contentSecurityPolicyReportOnly: 'content-security-policy-report-only',
  referrerPolicy: 'referrer-policy',
  permissionsPolicy: 'permissions-policy',
  customFrameOptionsValue: 'x-frame-options',
}

function headers(field: SourceField, { plan }: RouteScene): void {
  const changes = [
    ['customRequestHeaders', plan.requestHeaders],
    ['customResponseHeaders', plan.responseHeaders],
  ] as const
  for (const [list, lists] of changes) {
    for (const [name, value] of field.entries(list)) {
      const text = value.text() ?? ''
      if (text === '') lists.remove.push(name)
      else lists.set.push({ name, value: text })
    }
  }
  const { set } = plan.responseHeaders
  for (const [flag, [name, value]] of Object.entries(fixedHeaders)) {
    if (field.flag(flag) === true) set.push({ name, value })
  }
  for (const [option, name] of Object.entries(namedHeaders)) {
    const value = field.text(option)
    if (value !== undefined) set.push({ name, value })
  }
  const seconds = field.number('stsSeconds') ?? 0
  const parts = [
    `max-age=${seconds}`,
    ...(field.flag('stsIncludeSubdomains') === true ? ['includeSubDomains'] : []),
    ...(field.flag('stsPreload') === true ? ['preload'] : []),
  ]
  if (seconds > 0) set.push({ name: 'strict-transport-security', value: parts.join('; ') })
  addCors(field, plan)
}

function addCors(field: SourceField, plan: RoutePlan): void {
  const cors = compact({
    allowOrigins: field.list('accessControlAllowOriginList'),
    allowMethods: field.list('accessControlAllowMethods'),
    allowHeaders: field.list('accessControlAllowHeaders'),
    exposeHeaders: field.list('accessControlExposeHeaders'),
    allowCredentials: field.flag('accessControlAllowCredentials'),
    maxAge: field.number('accessControlMaxAge'),
  })
  field.ignore('addVaryHeader')
  if (Object.keys(cors).length > 0) setTraffic(plan, 'cors', cors, field)
}

/** Without `ipStrategy`, the source of a request is the address of its connection, as in Sluice. */
function allowAddresses(field: SourceField, { plan }: RouteScene): void {
  const condition = sourceIn(field.texts('sourceRange'))
  field.get('ipStrategy').lose('the address is that of the connection', 'protection')
  field.get('rejectStatusCode').lose('requests are refused with 403', 'lost')
  if (condition === undefined)
    field.report('stricter', 'is not a list of address ranges; all requests are refused')
  plan.authorization.push({ action: 'Require', expressions: [condition ?? 'false'] })
}

function basicAuth(field: SourceField, { plan }: RouteScene): void {
  field.ignore('removeHeader')
  field.get('headerField').lose('backends get no user name', 'lost')
  const basic = compact({
    realm: field.text('realm'),
    secretRef: { name: field.text('secret') ?? '', key: 'users' },
  })
  setTraffic(plan, 'basicAuthentication', basic, field)
}

function forwardAuth(field: SourceField, { plan, result }: RouteScene): void {
  const address = parseAddress(field.text('address') ?? '')
  if (address === undefined) {
    field.report('protection', 'is not a URL; every request is refused')
    plan.authorization.push({ action: 'Require', expressions: ['false'] })
    return
  }
  field.get('tls').lose('the certificate of the service is verified', 'lost')
  field.get('forwardBody').lose('the service gets no body', 'protection')
  field.ignore('trustForwardHeader', 'maxBodySize', 'preserveLocationHeader')
  field.report('changed', 'only the answer 200 allows a request; Traefik accepts every 2xx')
  const names = field.texts('authRequestHeaders')
  if (names.length === 0) {
    field.report('changed', 'the service gets authorization, cookie, user-agent and accept only')
  }
  const external = {
    backendRef: addStatic(result, address, field),
    http: compact({
      path: quote(address.path === '' ? '/' : address.path),
      allowedRequestHeaders: names.length > 0 ? names : ['cookie', 'user-agent', 'accept'],
      addRequestHeaders: {
        'x-forwarded-method': 'request.method',
        'x-forwarded-proto': 'request.scheme',
        'x-forwarded-host': 'request.host',
        'x-forwarded-uri': 'request.pathAndQuery',
        'x-forwarded-for': 'source.address',
      },
      allowedResponseHeaders: filled(field.texts('authResponseHeaders')),
    }),
  }
  setTraffic(plan, 'extAuth', external, field)
}

const unitSeconds: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600 }

function secondsOf(text: string): number {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? []
  return Number(amount ?? Number.NaN) * (unitSeconds[unit] ?? 1)
}

function rateLimit(field: SourceField, { plan }: RouteScene): void {
  const amount = field.number('average') ?? 0
  if (amount === 0) return
  const seconds = secondsOf(field.text('period') ?? '1s')
  const burst = field.number('burst') ?? 1
  const source = field.get('sourceCriterion')
  const header = source.text('requestHeaderName')
  source.get('ipStrategy').lose('the address is that of the connection', 'protection')
  if (source.flag('requestHost') === true) reportShared(source, 'Traefik counts for each host')
  const key = header === undefined ? byAddress : byHeader(header)
  const limit = limitOf({ amount, seconds, key }, field)
  if (limit === undefined) field.report('protection', 'the rate has no counterpart')
  else plan.limits.push({ ...limit, burst: Math.max(0, burst - amount) || undefined })
}

function retry(field: SourceField, { plan }: RouteScene): void {
  field.ignore('initialInterval')
  const attempts = Math.max(0, (field.number('attempts') ?? 1) - 1)
  setTraffic(plan, 'retry', { attempts }, field, 'lost')
}

export const middlewareKinds: Readonly<Record<string, Convert>> = {
  stripPrefix,
  addPrefix,
  replacePath,
  redirectScheme,
  headers,
  ipAllowList: allowAddresses,
  ipWhiteList: allowAddresses,
  basicAuth,
  forwardAuth,
  rateLimit,
  retry,
  compress: (field) => field.lose('responses are not compressed', 'lost'),
  buffering: (field) =>
    field.lose('`maxBufferSize` of `frontend.http` limits bodies', 'protection'),
  contentType: (field) => field.ignore('autoDetect'),
  circuitBreaker: (field) => field.lose('`backend.health` ejects endpoints that fail', 'lost'),
  errors: (field) => field.lose('error responses of backends are passed on unchanged', 'lost'),
  replacePathRegex: (field) => field.lose('paths cannot be rewritten by a pattern', 'route'),
  redirectRegex: (field) => field.lose('redirects cannot be made by a pattern', 'route'),
  stripPrefixRegex: (field) => field.lose('prefixes cannot be stripped by a pattern', 'route'),
  inFlightReq: (field) => field.lose('parallel requests are not limited', 'protection'),
  digestAuth: (field) => field.lose('digest authentication has no counterpart', 'protection'),
  plugin: (field) => field.lose('a plugin may protect something', 'protection'),
}
