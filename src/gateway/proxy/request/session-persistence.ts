/**
 * Session persistence of a rule (Gateway API, GEP-1619). The first response sends a token to the client.
 * Later requests with the token go to the same endpoint, whatever the weights of the backends. If that
 * endpoint is gone or ejected, another one is chosen and a new session begins.
 */
import type { RequestHead } from '../../../ground/exchange/exchange.ts'
import { objectKey } from '../../../ground/model/names.ts'
import type { RouteResource, SessionPersistence } from '../../../ground/model/resources.ts'
import type { CompiledBackend, CompiledRule } from '../config/rules.ts'
import type { RequestContext } from './request-context.ts'
import type { SessionOrigin, SessionTokens } from './session-tokens.ts'

/** Identifies the rule and the cookie or header of a token. A token is not valid for any other. */
function ruleIdentity({ route, ruleName, ruleIndex }: RouteResource, name: string): string {
  return `${objectKey(route)}/${ruleName ?? ruleIndex} ${name}`
}

/** Sets the session of the request. Returns the backend of the session if it is valid. */
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
  // HTTP/2 may send one field for each cookie (RFC 9113 8.2.3).
  for (const line of headers.getAll('cookie')) {
    for (const pair of line.split(';')) {
      const equals = pair.indexOf('=')
      if (pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
    }
  }
  return undefined
}

/** Adds a session token to the response, unless the client already has one for this endpoint. */
export function keepSession({ session, routed, backend, attempt, exchange }: RequestContext) {
  const { response } = exchange
  const rule = routed?.placement.rule.resource
  const settings = rule?.session
  if (session === undefined || rule === undefined || settings === undefined) return
  if (backend?.label === undefined || attempt === undefined || response === undefined) return
  const { host, port } = attempt.address
  const { tokens, origin } = session
  if (origin?.backend === backend.label && origin.host === host && origin.port === port) return
  const begun = { backend: backend.label, host, port, begunAt: Date.now() }
  const token = tokens.seal(begun, ruleIdentity(rule, settings.name))
  if (token === undefined) return
  if (settings.carrier === 'Header') response.headers.set(settings.name, token)
  else {
    const isSecure = exchange.tls !== undefined
    response.headers.add(
      'set-cookie',
      cookieOf(settings, token, routed?.cookiePath ?? '/', isSecure),
    )
  }
}

/** Writes a Set-Cookie value (RFC 6265 4.1). Browsers send a cookie with `Secure` only over TLS. */
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
