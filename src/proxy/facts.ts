import { isKeyParameter } from '../auth/vendor-keys.ts'
import { isCredentialName, mayNameCredential, redacted } from '../base/credential-names.ts'
import { changeQuery } from '../base/query-string.ts'
import type { GatewayError } from '../errors/index.ts'
import type { PeerCertificate } from '../exchange/exchange.ts'
import { grpcStatus } from '../variables/index.ts'
import type { BackendKinds } from './request/backend-kind.ts'
import { originalOf, type RequestContext } from './request/request-context.ts'
import type { RequestFacts } from './telemetry/types.ts'
import { takesVendorKeys } from './vendor-keys.ts'

/** What log and metrics learn of a finished exchange. */
export function factsOf(context: RequestContext, kinds: BackendKinds): RequestFacts {
  const { exchange, placement, listener, backend, address, call } = context
  const place = placement?.place ?? listener?.place
  const error = exchange.error ?? context.error
  // Named one by one: spreading makes a slower object, once for each request.
  const { method, host, path } = context.original ?? originalOf(exchange)
  const subject = exchange.learned.jwt?.sub
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
    // A client that left early is logged with the status that says so, although it was not sent.
    status: exchange.sentStatus || (error?.row.status ?? 0),
    durationMs: exchange.endedAt - exchange.startedAt,
    retries: context.retries,
    grpcStatus: context.isGrpc ? numberOf(grpcStatus(exchange)) : undefined,
    identity: exchange.tls === undefined ? undefined : identityOf(exchange.peerCertificate),
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

/** `?key=` is a credential of model vendors, and an ordinary parameter of others. */
function withoutCredentials(
  path: string,
  { placement }: RequestContext,
  kinds: BackendKinds,
): string {
  const start = path.indexOf('?') + 1
  if (start === 0 || !mayNameCredential(path)) return path
  const mayBeVendors = placement === undefined || takesVendorKeys(placement.rule, kinds)
  const query = changeQuery(path.slice(start), (parameter, name) => {
    const isHidden = isCredentialName(name) || (mayBeVendors && isKeyParameter(name))
    return isHidden ? `${parameter.split('=', 1)[0]}=${redacted}` : parameter
  })
  return path.slice(0, start) + (query ?? '')
}

const numberOf = (value: bigint | undefined) => (value === undefined ? undefined : Number(value))

function identityOf(certificate: PeerCertificate | undefined): string | undefined {
  return certificate?.spiffeId ?? certificate?.subjectCn
}

/** `outermost place: ... : text: detail`. */
function textOf(error: GatewayError): string {
  return [...error.where.toReversed(), error.message].join(': ')
}
