/** Compiles `sessionPersistence` of a route rule (Gateway API, GEP-1619). */

import { parseDurationMs } from '../../../ground/base/duration.ts'
import type { ObjectRef } from '../../../ground/model/names.ts'
import { objectKey } from '../../../ground/model/names.ts'
import type { BackendTarget, SessionPersistence } from '../../../ground/model/resources.ts'
import type { SessionPersistenceSpec } from '../../api/gateway-api/session-persistence.ts'
import { findBackendKind } from '../backend-kind.ts'
import type { Failure } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import type { ViewedRule } from './http-rule.ts'

/** Header fields that already have a meaning, or that proxies remove. */
const reservedHeaders = new Set([
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

/** A token of RFC 9110 5.6.2, which RFC 6265 4.1.1 also requires for cookie names. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** The position of a rule, from which the default session name is made. */
interface RulePlace {
  readonly route: ObjectRef
  readonly index: number
}

/** Adds the session to the rule, or makes the rule unusable if the session is not possible as configured. */
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

/** Every rule has its own name, so that the sessions of different rules do not overwrite each other. */
function defaultName({ route, index }: RulePlace): string {
  return `sluice-session-${shortHash(`${objectKey(route)}/${index}`)}`
}

/** 32-bit FNV-1a: short, and the same on every machine. */
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
  if (carrier === 'Header' && reservedHeaders.has(name)) {
    return refused(`${path}.sessionName: the header ${name} has another meaning`)
  }
  if (isPermanent && absoluteTimeoutMs === undefined) {
    return refused(`${path}.absoluteTimeout: a permanent cookie needs more than 0s`)
  }
  return undefined
}

/** A note if the backend chooses the endpoint of each request itself, so that the session has no effect. */
function noteOf(target: BackendTarget, path: string, read: Reader): string | undefined {
  if (target.type !== 'backend') return undefined
  const why = findBackendKind(target, read)?.definition.choosesEndpoints
  const { namespace, name } = target
  return why && `${path} does not choose an endpoint of GatewayBackend ${namespace}/${name}: ${why}`
}
