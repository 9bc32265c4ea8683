/** Converts the policies of routes of the standalone agentgateway. */
import { entryOf } from '../../../ground/base/json-object.ts'
import { compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { limitOf } from '../limits.ts'
import { addStatic, corsFields, toRoute } from '../targets.ts'
import { builtins } from './builtins.ts'
import { apiKey } from './standalone-keys.ts'
import {
  basicAuth,
  keysOf,
  mcpAuthentication,
  mcpAuthorization,
  modeOf,
} from './standalone-login.ts'
import { hostOf, type RouteScene, secondsOf } from './standalone-scene.ts'
import { extAuthz, extProc, remoteRateLimit } from './standalone-services.ts'

type PolicyReader = (field: SourceField, scene: RouteScene) => void

/** Reads the known policies. Those that stay unread are reported. */
export function applyPolicies(policies: SourceField, scene: RouteScene): void {
  if (!policies.isSet) return
  for (const [name, field] of policies.entries()) {
    entryOf(readers, name)?.(field, scene)
  }
}

const pairs = (field: SourceField): Fields[] =>
  field.entries().map(([name, value]) => ({ name, value: value.text() ?? '' }))

const headerChanges = (field: SourceField): Fields => ({
  add: pairs(field.get('add')),
  set: pairs(field.get('set')),
  remove: field.texts('remove'),
})

/** The host and port of `authority`: a text, or one of `full`, `host` and `port`. */
function authorityOf(field: SourceField): { hostname?: string; port?: number } {
  const text = typeof field.value === 'string' ? field.text() : field.text('full')
  const [, hostname, , port] = /^(.*?)(:(\d+))?$/.exec(text ?? '') ?? []
  if (text !== undefined)
    return compact({ hostname, port: port ? Number(port) : undefined }) as never
  return compact({ hostname: field.text('host'), port: field.number('port') }) as never
}

function pathChange(field: SourceField): Fields | undefined {
  const full = field.text('full')
  const prefix = field.text('prefix')
  if (full !== undefined) return { type: 'ReplaceFullPath', replaceFullPath: full }
  if (prefix !== undefined) return { type: 'ReplacePrefixMatch', replacePrefixMatch: prefix }
  return undefined
}

function redirect(field: SourceField, { filters }: RouteScene): void {
  const scheme = field.text('scheme')
  const authority = authorityOf(field.get('authority'))
  if (scheme === undefined && authority.port === undefined) {
    field.report(
      'changed',
      'keeps the port of the listener, because neither scheme nor port is set',
    )
  }
  const requestRedirect = compact({
    scheme,
    ...authority,
    path: pathChange(field.get('path')),
    statusCode: field.number('status'),
  })
  filters.push({ type: 'RequestRedirect', requestRedirect })
}

function rewrite(field: SourceField, { filters }: RouteScene): void {
  const { hostname, port } = authorityOf(field.get('authority'))
  if (port !== undefined) field.get('authority').report('changed', 'the port is left out')
  const urlRewrite = compact({ hostname, path: pathChange(field.get('path')) })
  filters.push({ type: 'URLRewrite', urlRewrite })
}

function mirror(field: SourceField, { filters, result }: RouteScene): void {
  const address = hostOf(field.at('backend', 'host'))
  if (address === undefined) return
  const backendRef = addStatic(result, { ...address, isTls: false }, field)
  const share = field.number('percentage')
  // agentgateway counts from 0 to 1.
  const percent = share === undefined ? undefined : Math.round(share * 100)
  filters.push({ type: 'RequestMirror', requestMirror: compact({ backendRef, percent }) })
}

function directResponse(field: SourceField, { plan }: RouteScene): void {
  const body = field.get('body')
  const isText = typeof body.value === 'string'
  if (body.isSet && !isText) body.report('lost', 'a body that is not text is left out')
  if (!isText) body.take()
  const headers = field.items('headers').map((header) => ({
    name: header.text('name'),
    value: header.text('value'),
  }))
  plan.traffic.directResponse = compact({
    status: field.number('status') ?? 200,
    body: isText ? body.text() : undefined,
    bodyExpression: field.text('bodyExpression'),
    headers: headers.length === 0 ? undefined : headers,
  })
}

function cors(field: SourceField, { plan }: RouteScene): void {
  const maxAge = field.text('maxAge')
  plan.traffic.cors = compact({
    ...corsFields(field),
    maxAge: maxAge === undefined ? undefined : secondsOf(maxAge),
  })
}

function timeout(field: SourceField, { rule }: RouteScene): void {
  rule.timeouts = compact({
    request: field.text('requestTimeout'),
    backendRequest: field.text('backendRequestTimeout'),
  })
}

function retry(field: SourceField, { plan }: RouteScene): void {
  const codes = field.items('codes').flatMap((code) => code.number() ?? [])
  plan.traffic.retry = compact({
    attempts: field.number('attempts'),
    backoff: field.text('backoff'),
    codes: filled(codes),
  })
}

const actions = { allow: 'Allow', deny: 'Deny', require: 'Require' } as const

/** Rules are expressions that allow, or objects with the action as their only field. */
function rulesOf(
  field: SourceField,
): readonly { readonly action: string; readonly expressions: string[] }[] {
  const rules = field.items('rules')
  return Object.entries(actions).flatMap(([name, action]) => {
    const expressions = rules.flatMap((rule) => {
      if (typeof rule.value === 'string') return action === 'Allow' ? (rule.text() ?? []) : []
      return rule.text(name) ?? []
    })
    return expressions.length > 0 ? [{ action, expressions }] : []
  })
}

/** Adds rules as policies of their own, because rules of several policies apply together. */
function authorization(field: SourceField, { name, result }: RouteScene): void {
  for (const { action, expressions } of rulesOf(field)) {
    const rules = { action, policy: { matchExpressions: expressions } }
    result.policy(
      `${name}-rules-${action.toLowerCase()}`,
      [toRoute(name)],
      { traffic: { authorization: rules } },
      field,
    )
  }
}

function localLimits(field: SourceField, { plan }: RouteScene): void {
  for (const limit of field.oneOrMore()) {
    const unit = limit.text('type') === 'tokens' ? 'tokens' : 'requests'
    const most = limit.number('maxTokens') ?? 0
    // The bucket of the source never holds more than `maxTokens`.
    const fill = Math.min(limit.number('tokensPerFill') ?? most, most)
    const seconds = secondsOf(limit.text('fillInterval') ?? '')
    const converted = limitOf({ amount: fill, seconds, unit }, limit)
    if (converted === undefined) {
      limit.report('protection', 'fillInterval is neither 1s, 1m, 1h nor longer than an hour')
    } else plan.limits.push(compact({ ...converted, burst: most > fill ? most - fill : undefined }))
  }
}

function jwtAuth(field: SourceField, { plan, result }: RouteScene): void {
  const providers = field.has('providers') ? field.items('providers') : [field]
  const converted = providers.flatMap((provider) => {
    const remote = keysOf(provider.get('jwks'), result)
    const audiences = filled(provider.texts('audiences'))
    if (remote === undefined) return []
    const required = provider.at('jwtValidationOptions', 'requiredClaims').texts()
    const requiredClaims = filled(required.filter((name) => name !== 'exp'))
    const issuer = provider.text('issuer')
    return [compact({ issuer, audiences, requiredClaims, jwks: { remote } })]
  })
  const location = field.take('location')
  if (converted.length > 0) {
    plan.traffic.jwtAuthentication = compact({ ...modeOf(field), location, providers: converted })
  }
}

function backendTls(field: SourceField, { backend }: RouteScene): void {
  const isInsecure = field.flag('insecure') === true
  backend.tls = isInsecure ? { insecureSkipVerify: 'All' } : {}
}

/** Guards of requests and responses by patterns; the others stay unread and are reported. */
function ai(field: SourceField, { plan }: RouteScene): void {
  const guard = field.get('promptGuard')
  plan.requestGuards.push(...guard.oneOrMore('request').flatMap(guardOf))
  plan.responseGuards.push(...guard.oneOrMore('response').flatMap(guardOf))
}

function guardOf(field: SourceField): Fields[] {
  const regex = field.get('regex')
  if (!regex.isSet) return []
  const action = regex.text('action')
  const rules = regex.items('rules')
  const fields = {
    action: action === undefined ? undefined : `${action[0]?.toUpperCase()}${action.slice(1)}`,
    builtins: filled(rules.flatMap((rule) => builtinOf(rule.get('builtin')) ?? [])),
    matches: filled(rules.flatMap((rule) => rule.text('pattern') ?? [])),
  }
  const isEmpty = fields.builtins === undefined && fields.matches === undefined
  return isEmpty ? [] : [{ regex: compact(fields) }]
}

function builtinOf(field: SourceField): string | undefined {
  const name = field.text()
  if (name === undefined) return undefined
  const found = entryOf(builtins, name)
  return found ?? field.refuse('protection', `no built-in pattern has the name ${name}`)
}

const readers: Readonly<Record<string, PolicyReader>> = {
  a2a: (field, scene) => {
    scene.plan.a2a = field
  },
  ai,
  apiKey,
  authorization,
  backendTLS: backendTls,
  basicAuth,
  cors,
  directResponse,
  extAuthz,
  extProc,
  jwtAuth,
  localRateLimit: localLimits,
  mcpAuthentication,
  mcpAuthorization: (field, scene) => mcpAuthorization(rulesOf(field), scene),
  remoteRateLimit,
  requestHeaderModifier: (field, { filters }) =>
    filters.push({ type: 'RequestHeaderModifier', requestHeaderModifier: headerChanges(field) }),
  responseHeaderModifier: (field, { filters }) =>
    filters.push({ type: 'ResponseHeaderModifier', responseHeaderModifier: headerChanges(field) }),
  requestMirror: mirror,
  requestRedirect: redirect,
  retry,
  timeout,
  urlRewrite: rewrite,
}
