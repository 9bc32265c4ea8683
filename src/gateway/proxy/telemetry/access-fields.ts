/** The fields of an access log line and of a span, and how their texts are written. */
import type { ServerExchange } from '../../../engines/http/contracts/requests.ts'
import type { ServerStream } from '../../../engines/http/contracts/streams.ts'
import { SocketPeer } from '../../../engines/http/sockets/connection-ends.ts'
import { BoundedMap } from '../../../ground/base/bounded-map.ts'
import type { Exchange } from '../../../ground/exchange/exchange.ts'
import { principalName } from '../../principal/principal.ts'
import { wasTunnel } from './tunnel-telemetry.ts'
import type { AccessRecord, StreamRecord, VisitField } from './types.ts'

/** Returns the protocol that the gateway reads: that of the backend's kind, or else `http` or `https`. */
function protocolOf({ protocol, record }: AccessRecord): string {
  return record?.protocol ?? protocol
}

function visitPlace(record: StreamRecord, source: Address, visit: VisitField): void {
  visit('gateway', record.gateway, false)
  visit('listener', record.listener, false)
  visit('route_rule', record.rule, false)
  visit('route', record.route, false)
  visit('endpoint', record.endpoint, false)
  visit('src.addr', addressText(source), false)
}

function visitOutcome(record: StreamRecord, visit: VisitField): void {
  visit('error', record.error, true)
  visit('reason', record.reason === 'Upstream' ? undefined : record.reason, false)
  visit('duration', durationText(record.durationMs), false)
}

/**
 * Visits every field of a request in order, including those of the backend. Values may be undefined or
 * empty.
 */
export function eachField(access: AccessRecord, exchange: ServerExchange, visit: VisitField): void {
  visitPlace(access, exchange.source, visit)
  visit('src.identity', access.identity, false)
  visit('http.method', access.method, false)
  visit('http.host', access.host, false)
  visit('http.path', access.path, false)
  visit('http.version', versionText(exchange.request.version), false)
  visit('http.status', statusOf(exchange, access) || undefined, false)
  visit('grpc.status', access.grpcStatus, false)
  visit('trace.id', access.traceId, false)
  visit('span.id', access.spanId, false)
  visit('jwt.sub', access.subject, false)
  eachIdentity(exchange, visit)
  visit('protocol', protocolOf(access), false)
  access.record?.eachField(visit)
  visit('retry.attempt', access.retries || undefined, false)
  if (wasTunnel(exchange, access)) {
    visit('bytes.received', exchange.requestBytes, false)
    visit('bytes.sent', exchange.responseBytes, false)
  }
  visitOutcome(access, visit)
}

/** Names of fields, by their dimensions. The configuration has only a few. */
const identityFields = new BoundedMap<string, string>(256)

/** Visits who the request belongs to, such as `identity.team`. */
export function eachIdentity(exchange: Exchange, visit: VisitField): void {
  const own = exchange.learned.ownIdentity
  if (own === undefined) visit('identity.principal', principalName(exchange), false)
  else for (const dimension in own) visit(identityField(dimension), own[dimension], false)
}

function identityField(dimension: string): string {
  let name = identityFields.get(dimension)
  if (name === undefined) {
    name = `identity.${dimension}`
    identityFields.set(dimension, name)
  }
  return name
}

/** Visits every field of a connection or UDP session that was forwarded without being read. */
export function eachStreamField(
  access: StreamRecord,
  stream: ServerStream,
  visit: VisitField,
): void {
  visitPlace(access, stream.source, visit)
  visit('tls.sni', stream.serverName, false)
  visit('protocol', stream.protocol, false)
  visit('bytes.received', stream.receivedBytes, false)
  visit('bytes.sent', stream.sentBytes, false)
  visitOutcome(access, visit)
}

export interface Address {
  readonly address: string
  readonly port: number
}

/** Writes `address:port`, with brackets around IPv6 addresses. */
export function addressText(of: Address): string {
  if (of instanceof SocketPeer) return of.text
  const { address, port } = of
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

const durations: string[] = []

/** Writes milliseconds. The texts of short durations are kept, since most requests have one. */
function durationText(ms: number): string {
  const whole = Math.trunc(ms)
  if (whole >= 1_000) return `${whole}ms`
  durations[whole] ??= `${whole}ms`
  return durations[whole]
}

const versions = new Map<string, string>()

function versionText(version: string): string {
  const known = versions.get(version)
  if (known !== undefined) return known
  const text = `HTTP/${version}`
  versions.set(version, text)
  return text
}

/** Returns the status for log and metrics: the status that was sent or, if none was, that of the error. */
export function statusOf(exchange: ServerExchange, access: AccessRecord): number {
  return access.status || exchange.error?.row.status || 0
}

/** Matches characters that could be mistaken for the end of a value or of a line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters must be quoted
export const unsafe = /[\u0000-\u0020\u007f-\u00a0\u2028\u2029]/

/** Matches control characters that JSON.stringify does not escape. */
const unsafeInJson = /[\u007f-\u009f\u2028\u2029]/g

export const quote = (value: string): string =>
  JSON.stringify(value).replace(
    unsafeInJson,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
