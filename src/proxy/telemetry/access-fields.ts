/**
 * Visits the fields of an access log line one by one, for spans and for lines that a policy changes. Other
 * lines are written in one go by `access-line.ts`. A test checks that both give the same text.
 */
import type { ServerExchange } from '../../engine/contracts/requests.ts'
import type { ServerStream } from '../../engine/contracts/streams.ts'
import { SocketPeer } from '../../engine/sockets/connection-ends.ts'
import type { AccessRecord, StreamRecord, VisitField } from './types.ts'

/** Returns the protocol that the gateway reads: that of the backend's kind, or else `http` or `https`. */
export function protocolOf({ protocol, record }: AccessRecord): string {
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
  visit('duration', `${Math.trunc(record.durationMs)}ms`, false)
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
  visit('http.version', `HTTP/${exchange.request.version}`, false)
  visit('http.status', statusOf(exchange, access) || undefined, false)
  visit('grpc.status', access.grpcStatus, false)
  visit('trace.id', access.traceId, false)
  visit('span.id', access.spanId, false)
  visit('jwt.sub', access.subject, false)
  visit('protocol', protocolOf(access), false)
  access.record?.eachField(visit)
  visit('retry.attempt', access.retries || undefined, false)
  visitOutcome(access, visit)
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

/** Returns the status for log and metrics: the status that was sent or, if none was, that of the error. */
export function statusOf(exchange: ServerExchange, access: AccessRecord): number {
  return access.status || exchange.error?.row.status || 0
}

// Matches characters that could be mistaken for the end of a value or of a line.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters must be quoted
const unsafe = /[\u0000-\u0020\u007f-\u00a0\u2028\u2029]/

/** Matches control characters that JSON.stringify does not escape. */
const unsafeInJson = /[\u007f-\u009f\u2028\u2029]/g

export const quote = (value: string): string =>
  JSON.stringify(value).replace(
    unsafeInJson,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Writes ` name=value`, quoted if necessary. Returns an empty text if there is no value. */
export const word = (name: string, value: string | undefined): string => {
  if (value === undefined || value === '') return ''
  return unsafe.test(value) ? ` ${name}=${quote(value)}` : ` ${name}=${value}`
}
