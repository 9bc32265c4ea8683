/** `sessionPersistence` of a route rule (Gateway API, GEP-1619): what carries a session, and how long. */
import type { SessionPersistenceSpec } from '../../api/gateway-api/session-persistence.ts'
import type { GatewayBackendSpec } from '../../api/gateway-backend.ts'
import { parseDurationMs } from '../../base/duration.ts'
import type { ObjectRef } from '../../model/names.ts'
import { objectKey } from '../../model/names.ts'
import type { BackendTarget, SessionPersistence } from '../../model/resources.ts'
import type { Failure } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { specOf } from '../specs.ts'
import type { ViewedRule } from './http-rule.ts'

/** Header fields that mean something else already, or that proxies take away. */
const taken = new Set([
  'authorization',
  'connection',
  'content-length',
  'cookie',
  'host',
  'keep-alive',
  'set-cookie',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** RFC 9110 5.6.2; RFC 6265 4.1.1 has the same for names of cookies. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Where a rule stands, for the default of its session's name. */
interface RulePlace {
  readonly route: ObjectRef
  readonly index: number
}

/** The rule with its session, or unusable where the session cannot be kept as asked. */
export function withSession(
  rule: ViewedRule,
  spec: SessionPersistenceSpec | undefined,
  place: RulePlace,
  read: Reader,
): ViewedRule {
  if (spec === undefined) return rule
  const path = `spec.rules[${place.index}].sessionPersistence`
  const absoluteTimeoutMs = parseDurationMs(spec.absoluteTimeout ?? '0s')
  const isPermanent = spec.cookieConfig?.lifetimeType === 'Permanent'
  const carrier = spec.type ?? 'Cookie'
  const name = spec.sessionName ?? defaultName(place)
  const session: SessionPersistence = {
    carrier,
    name: carrier === 'Header' ? name.toLowerCase() : name,
    ...(absoluteTimeoutMs !== undefined && absoluteTimeoutMs > 0 && { absoluteTimeoutMs }),
    isPermanent,
  }
  const problem = problemOf(session, path)
  const notes = rule.backends.flatMap(({ target }) => noteOf(target, path, read) ?? [])
  return {
    ...rule,
    ...(problem === undefined ? { session } : { unusable: rule.unusable ?? problem }),
    notes: [...rule.notes, ...new Set(notes)],
  }
}

/** Names of different rules differ, so that the session of one is never overwritten by another. */
function defaultName({ route, index }: RulePlace): string {
  return `sluice-session-${shortHash(`${objectKey(route)}/${index}`)}`
}

/** FNV-1a, 32 bits: short, and the same everywhere. */
function shortHash(text: string): string {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  }
  return (hash >>> 0).toString(16).padStart(8, '0')
}

function problemOf(session: SessionPersistence, path: string): Failure | undefined {
  const refused = (message: string) => ({ reason: 'UnsupportedValue', message })
  const { carrier, name, isPermanent, absoluteTimeoutMs } = session
  if (!token.test(name)) {
    const what = carrier === 'Cookie' ? 'cookie' : 'header'
    return refused(`${path}.sessionName: "${name}" is not a name that a ${what} can have`)
  }
  if (carrier === 'Header' && taken.has(name)) {
    return refused(`${path}.sessionName: the header ${name} has another meaning`)
  }
  if (isPermanent && absoluteTimeoutMs === undefined) {
    return refused(`${path}.absoluteTimeout: a permanent cookie needs more than 0s`)
  }
  return undefined
}

/** Backends that settle by themselves where a request goes. */
function noteOf(target: BackendTarget, path: string, read: Reader): string | undefined {
  if (target.type !== 'backend') return undefined
  const { namespace, name } = target
  const backend = read.object('GatewayBackend', namespace, name)?.object
  const spec: GatewayBackendSpec = backend === undefined ? {} : specOf<'GatewayBackend'>(backend)
  const why =
    (spec.ai && 'a provider is chosen for each request') ??
    (spec.mcp && 'MCP has sessions of its own') ??
    (spec.dynamicForwardProxy && 'clients choose the destination')
  return why && `${path} does not choose an endpoint of GatewayBackend ${namespace}/${name}: ${why}`
}
