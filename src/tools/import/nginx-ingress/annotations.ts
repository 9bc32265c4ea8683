/** Converts the annotations of the nginx Ingress controller. */
import { compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { byAddress } from '../limits.ts'
import { addStatic, duration, parseAddress, sourceIn } from '../targets.ts'
import { addAuthentication } from './authentication.ts'
import type { RuleSettings } from './rules.ts'
import { type AnnotationScene, listOf, type Read } from './scene.ts'

interface IngressSettings extends RuleSettings {
  readonly redirectsToTls: boolean
  /** A rule that redirects the root path. */
  readonly rootRedirect: Fields | undefined
  /** Settings of connections to the Services. */
  readonly backend: Fields
}

/** Settings of nginx itself, which have no meaning for another proxy. */
const neutral = [
  'proxy-buffering',
  'proxy-buffer-size',
  'proxy-buffers-number',
  'proxy-busy-buffers-size',
  'proxy-max-temp-file-size',
  'proxy-request-buffering',
  'client-body-buffer-size',
  'proxy-http-version',
  'service-upstream',
  'enable-access-log',
  'enable-rewrite-log',
  'preserve-trailing-slash',
]

export function applyAnnotations(
  annotations: SourceField,
  scene: AnnotationScene,
): IngressSettings {
  const read: Read = (name) => annotations.get(`nginx.ingress.kubernetes.io/${name}`)
  for (const name of neutral) read(name).take()
  read('canary').take()
  addLimits(read, scene)
  addSources(read, scene)
  addCors(read, scene)
  addTimeouts(read, scene)
  addRetries(read, scene)
  addAuthentication(read, scene)
  for (const name of [
    'configuration-snippet',
    'server-snippet',
    'auth-snippet',
    'modsecurity-snippet',
  ]) {
    const reason = 'directives of nginx are not converted, and may protect something'
    read(name).lose(reason, 'protection')
  }
  const forwarded = read('x-forwarded-prefix').text()
  if (forwarded !== undefined)
    scene.plan.requestHeaders.set.push({ name: 'x-forwarded-prefix', value: forwarded })
  return {
    usesPatterns: read('use-regex').flag() === true,
    rewriteTarget: read('rewrite-target'),
    filters: filtersOf(read, scene),
    redirect: redirectOf(read),
    sessionPersistence: persistenceOf(read),
    redirectsToTls: redirectsToTls(read),
    rootRedirect: rootRedirectOf(read),
    backend: backendOf(read),
  }
}

function addLimits(read: Read, { plan }: AnnotationScene): void {
  const multiplier = read('limit-burst-multiplier').number() ?? 5
  for (const [name, unit] of [
    ['limit-rps', 'Seconds'],
    ['limit-rpm', 'Minutes'],
  ] as const) {
    const field = read(name)
    const requests = field.number()
    if (requests === undefined || requests < 1) continue
    plan.limits.push({
      requests,
      unit,
      burst: Math.max(0, Math.round(requests * (multiplier - 1))),
      key: byAddress,
    })
  }
  read('limit-connections').lose('connections of a client are not limited')
  read('limit-rate').lose('bandwidth is not limited')
  read('limit-rate-after').lose('bandwidth is not limited')
  read('limit-whitelist').lose('these addresses are limited too', 'stricter')
}

function addSources(read: Read, { plan }: AnnotationScene): void {
  const lists = [
    ['Require', 'whitelist-source-range'],
    ['Require', 'allowlist-source-range'],
    ['Deny', 'denylist-source-range'],
  ] as const
  for (const [action, name] of lists) {
    const field = read(name)
    const text = field.text()
    if (text === undefined) continue
    const condition = sourceIn(text.split(','))
    if (condition === undefined) field.report('protection', 'is not a list of addresses')
    else plan.authorization.push({ action, expressions: [condition] })
  }
}

/** The headers that nginx allows unless the annotation names others. */
const corsHeaders =
  'DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization'

function addCors(read: Read, { plan }: AnnotationScene): void {
  const text = (name: string, byDefault: string) => listOf(read(name).text() ?? byDefault)
  if (read('enable-cors').flag() !== true) return
  plan.traffic.cors = compact({
    allowOrigins: text('cors-allow-origin', '*'),
    allowMethods: text('cors-allow-methods', 'GET, PUT, POST, DELETE, PATCH, OPTIONS'),
    allowHeaders: text('cors-allow-headers', corsHeaders),
    exposeHeaders: filled(text('cors-expose-headers', '')),
    allowCredentials: read('cors-allow-credentials').flag() ?? true,
    maxAge: read('cors-max-age').number() ?? 1_728_000,
  })
}

function addTimeouts(read: Read, { plan }: AnnotationScene): void {
  const field = read('proxy-read-timeout')
  const seconds = field.number()
  read('proxy-send-timeout').take()
  if (seconds === undefined) return
  plan.traffic.timeouts = { request: duration(seconds * 1000) }
  field.report('changed', 'limits the whole response, not the time between two reads')
}

function addRetries(read: Read, { plan }: AnnotationScene): void {
  const tries = read('proxy-next-upstream-tries').number()
  const conditions = read('proxy-next-upstream').text() ?? ''
  read('proxy-next-upstream-timeout').take()
  const codes = [...conditions.matchAll(/http_(\d{3})/g)].map(([, code]) => Number(code))
  if (conditions === 'off' || (tries === undefined && codes.length === 0)) return
  const attempts = Math.max(1, (tries ?? 3) - 1)
  plan.traffic.retry = compact({ attempts, codes: filled(codes) })
}

function filtersOf(read: Read, { result }: AnnotationScene): Fields[] {
  const host = read('upstream-vhost').text()
  const rewrite = host === undefined ? [] : [{ type: 'URLRewrite', urlRewrite: { hostname: host } }]
  const mirror = read('mirror-target')
  const address = parseAddress((mirror.text() ?? '').replace(/\$request_uri$/, ''))
  if (mirror.isSet && (address === undefined || address.path !== '')) {
    mirror.report('lost', 'is not an address without a path')
    return rewrite
  }
  if (address === undefined) return rewrite
  const backendRef = addStatic(result, address, mirror)
  return [...rewrite, { type: 'RequestMirror', requestMirror: { backendRef } }]
}

function redirectOf(read: Read): Fields | undefined {
  const permanent = read('permanent-redirect')
  const field = permanent.isSet ? permanent : read('temporal-redirect')
  const text = field.text()
  if (text === undefined) return undefined
  const address = parseAddress(text)
  const code = read('permanent-redirect-code').number()
  if (address === undefined) return field.report('lost', 'is not an http or https URL')
  const statusCode = permanent.isSet ? (code ?? 301) : 302
  const { host, port, isTls, path } = address
  const requestRedirect = {
    scheme: isTls ? 'https' : 'http',
    hostname: host,
    port,
    path: { type: 'ReplaceFullPath', replaceFullPath: path === '' ? '/' : path },
    statusCode,
  }
  return { type: 'RequestRedirect', requestRedirect }
}

function rootRedirectOf(read: Read): Fields | undefined {
  const root = read('app-root').text()
  if (root === undefined) return undefined
  const path = { type: 'ReplaceFullPath', replaceFullPath: root }
  const filter = { type: 'RequestRedirect', requestRedirect: { path, statusCode: 302 } }
  return { matches: [{ path: { type: 'Exact', value: '/' } }], filters: [filter] }
}

function persistenceOf(read: Read): Fields | undefined {
  const field = read('affinity')
  if (field.text() !== 'cookie') return undefined
  for (const name of ['affinity-mode', 'session-cookie-path', 'session-cookie-samesite'])
    read(name).take()
  for (const name of [
    'session-cookie-max-age',
    'session-cookie-expires',
    'session-cookie-secure',
  ]) {
    read(name).lose('the cookie ends with the session of the browser', 'changed')
  }
  return { type: 'Cookie', sessionName: read('session-cookie-name').text() ?? 'INGRESSCOOKIE' }
}

/** nginx redirects hosts with a certificate unless an annotation says otherwise. */
function redirectsToTls(read: Read): boolean {
  const force = read('force-ssl-redirect')
  if (force.flag() === true) {
    const reason = 'only hosts with a certificate are redirected, not requests of a proxy in front'
    force.report('changed', reason)
  }
  return read('ssl-redirect').flag() ?? true
}

const defaultBody = 1024 * 1024

function backendOf(read: Read): Fields {
  const size = read('proxy-body-size')
  if (size.isSet) {
    const bytes = bytesOf(size.text() ?? '')
    const isLower = bytes !== undefined && bytes > 0 && bytes < defaultBody
    size.report(isLower ? 'protection' : 'lost', 'bodies that are forwarded are not limited')
  }
  const protocol = (read('backend-protocol').text() ?? 'HTTP').toUpperCase()
  const verifies = read('proxy-ssl-verify').text() === 'on'
  const serverName = read('proxy-ssl-name').text()
  read('proxy-ssl-server-name').take()
  const isTls = protocol === 'HTTPS' || protocol === 'GRPCS'
  if (!/^(HTTPS?|GRPCS?|AUTO_HTTP)$/.test(protocol)) {
    read('backend-protocol').report('lost', `the protocol ${protocol} is not converted`)
  }
  if (isTls && !verifies) {
    read('backend-protocol').report('changed', 'certificates are not verified, as in nginx')
  }
  const seconds = read('proxy-connect-timeout').number()
  return compact({
    tcp: seconds === undefined ? undefined : { connectTimeout: duration(seconds * 1000) },
    tls: isTls ? { insecureSkipVerify: verifies ? undefined : 'All', sni: serverName } : undefined,
    http: protocol.startsWith('GRPC') ? { version: 'HTTP2' } : undefined,
  })
}

function bytesOf(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d+)([kmg]?)$/i.exec(text.trim()) ?? []
  const scale = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }[unit.toLowerCase()] ?? 1
  return digits === undefined ? undefined : Number(digits) * scale
}
