import { isKeyParameter } from '../auth/vendor-keys.ts'
import { isCredentialName, mayNameCredential, redacted } from '../base/credential-names.ts'
import { changeQuery } from '../base/query-string.ts'
import type { GatewayError } from '../errors/index.ts'
import { grpcStatus } from '../variables/index.ts'
import type { BackendKinds } from './request/backend-kind.ts'
import { originalOf, type RequestContext } from './request/request-context.ts'
import type { AccessRecord } from './telemetry/types.ts'

/** Describes a finished exchange for the access log and metrics. */
export function accessRecordOf(context: RequestContext, kinds: BackendKinds): AccessRecord {
  const { exchange, placement, listener, backend, address, call } = context
  const place = placement?.place ?? listener?.place
  const error = exchange.error ?? context.error
  // Properties are listed one by one, because spreading makes a slower object.
  const { method, host, path } = context.original ?? originalOf(exchange)
  const subject = exchange.learned.jwt?.sub
  const grpc = context.isGrpc ? grpcStatus(exchange) : undefined
  const certificate = exchange.tls === undefined ? undefined : exchange.peerCertificate
  return {
    gateway: place?.gateway,
    listener: place?.listener,
    route: place?.route,
    rule: place?.rule,
    endpoint: address?.label ?? address?.pool,
    backend: backend?.label,
    reason: context.reason ?? error?.row.reason ?? 'Upstream',
    error: error === undefined ? context.refusal : textOf(error),
    bug: error?.code === 'bug' || error?.code === 'core_trapped' ? error : undefined,
    // If the client left early, the status of the error is logged although it was never sent.
    status: exchange.sentStatus || (error?.row.status ?? 0),
    durationMs: exchange.endedAt - exchange.startedAt,
    retries: context.retries,
    grpcStatus: grpc === undefined ? undefined : Number(grpc),
    identity: certificate?.spiffeId ?? certificate?.subjectCn,
    subject: typeof subject === 'string' ? subject : undefined,
    traceId: context.trace?.traceId,
    spanId: context.trace?.spanId,
    record: call?.record,
    accessLog: context.observers.accessLog,
    protocol: exchange.tls === undefined ? 'http' : 'https',
    method,
    host,
    path: withoutCredentials(path, context, kinds),
  }
}

/** Carries the id of a session of the older MCP transport, in lower case. */
const sessionParameter = 'sessionid'

/**
 * Hides credentials in the query. `?key=` is a credential for model vendors, but an ordinary parameter
 * otherwise.
 */
function withoutCredentials(
  path: string,
  { placement }: RequestContext,
  kinds: BackendKinds,
): string {
  const start = path.indexOf('?') + 1
  if (start === 0 || !mayNameCredential(path)) return path
  const mayBeVendors = placement === undefined || kinds.takesVendorKeys(placement.rule)
  const query = changeQuery(path.slice(start), (parameter, name) => {
    const isHidden =
      isCredentialName(name) ||
      name.toLowerCase() === sessionParameter ||
      (mayBeVendors && isKeyParameter(name))
    return isHidden ? `${parameter.split('=', 1)[0]}=${redacted}` : parameter
  })
  return path.slice(0, start) + (query ?? '')
}

/** Writes an error as `outermost place: …: text: detail`. */
function textOf(error: GatewayError): string {
  return [...error.where.toReversed(), error.message].join(': ')
}
