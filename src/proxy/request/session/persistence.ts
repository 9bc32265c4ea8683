/**
 * Session persistence of a rule (Gateway API, GEP-1619): the first response tells the client where
 * it was served, and later requests that say so go there, whatever the weights. Where that endpoint
 * is gone or out of order, another one serves, and the session begins anew with it.
 */
import type { RequestHead } from '../../../exchange/exchange.ts'
import { objectKey } from '../../../model/names.ts'
import type { RouteResource, SessionPersistence } from '../../../model/resources.ts'
import type { CompiledBackend, CompiledRule } from '../../config/rules.ts'
import type { RequestContext } from '../request-context.ts'
import type { SessionOrigin, SessionTokens } from './tokens.ts'

/** Whose token it is: a session of one rule is none of another. */
function ruleIdentity({ route, ruleName, ruleIndex }: RouteResource, name: string): string {
  return `${objectKey(route)}/${ruleName ?? ruleIndex} ${name}`
}

/** Remembers the request's session; the backend that it belongs to, where it still has one. */
export function resumeSession(
  context: RequestContext,
  rule: CompiledRule,
  tokens: SessionTokens,
): CompiledBackend | undefined {
  const { session } = rule.resource
  if (session === undefined) return undefined
  const token = tokenOf(context.exchange.request, session)
  const identity = ruleIdentity(rule.resource, session.name)
  const origin = token === undefined ? undefined : tokens.open(token, identity)
  const isOver = origin === undefined || isExpired(origin, session)
  const backend = isOver
    ? undefined
    : rule.sessionBackends.find(({ label }) => label === origin.backend)
  context.session = { tokens, origin: backend && origin }
  return backend
}

function isExpired({ begunAt }: SessionOrigin, { absoluteTimeoutMs }: SessionPersistence): boolean {
  return absoluteTimeoutMs !== undefined && Date.now() - begunAt >= absoluteTimeoutMs
}

function tokenOf({ headers }: RequestHead, { carrier, name }: SessionPersistence) {
  if (carrier === 'Header') return headers.get(name)
  // HTTP/2 may send a field for each cookie (RFC 9113 8.2.3).
  for (const line of headers.getAll('cookie')) {
    for (const pair of line.split(';')) {
      const equals = pair.indexOf('=')
      if (pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
    }
  }
  return undefined
}

/** Tells the client where it was served, unless it has said so itself. */
export function keepSession({
  session,
  placement,
  backend,
  address,
  exchange,
  cookiePath,
}: RequestContext) {
  const { response } = exchange
  const settings = placement?.rule.resource.session
  if (session === undefined || placement === undefined || settings === undefined) return
  if (backend?.label === undefined || address === undefined || response === undefined) return
  const { host, port } = address
  const { tokens, origin } = session
  if (origin?.backend === backend.label && origin.host === host && origin.port === port) return
  const begun = { backend: backend.label, host, port, begunAt: Date.now() }
  const token = tokens.seal(begun, ruleIdentity(placement.rule.resource, settings.name))
  if (token === undefined) return
  if (settings.carrier === 'Header') response.headers.set(settings.name, token)
  else {
    const isSecure = exchange.tls !== undefined
    response.headers.add('set-cookie', cookieOf(settings, token, cookiePath ?? '/', isSecure))
  }
}

/** RFC 6265 4.1; a browser sends a cookie with `Secure` back over TLS only. */
function cookieOf(
  { name, absoluteTimeoutMs = 0, isPermanent }: SessionPersistence,
  token: string,
  path: string,
  isSecure: boolean,
): string {
  const life = isPermanent ? `; Max-Age=${Math.ceil(absoluteTimeoutMs / 1_000)}` : ''
  const secure = isSecure ? '; Secure' : ''
  return `${name}=${token}; Path=${path}${life}; HttpOnly; SameSite=Strict${secure}`
}
