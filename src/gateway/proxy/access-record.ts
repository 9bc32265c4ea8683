import { changeQuery } from '../../ground/base/query-string.ts'
import type { GatewayError } from '../../ground/errors/index.ts'
import { budgetsOf } from '../../ground/exchange/budgets.ts'
import { notesOf } from '../../ground/exchange/notes.ts'
import {
  isCredentialParameter,
  mayNameCredential,
  redacted,
} from '../../ground/secrets/credential-names.ts'
import type { Step } from '../policies/define.ts'
import { grpcStatus } from '../variables/index.ts'
import type { BackendKinds } from './request/backend-kind.ts'
import { originalOf, type RequestContext } from './request/request-context.ts'
import { isRefused } from './telemetry/refused.ts'
import type { AccessRecord } from './telemetry/types.ts'

/** The record of the last exchange. All members are listed, so that the object keeps its shape. */
const record: { -readonly [Name in keyof AccessRecord]: AccessRecord[Name] } = {
  gateway: undefined,
  listener: undefined,
  route: undefined,
  rule: undefined,
  endpoint: undefined,
  backend: undefined,
  reason: 'Upstream',
  error: undefined,
  bug: undefined,
  status: 0,
  durationMs: 0.5,
  retries: 0,
  grpcStatus: undefined,
  identity: undefined,
  subject: undefined,
  traceId: undefined,
  spanId: undefined,
  exportedTrace: undefined,
  record: undefined,
  accessLog: undefined,
  metrics: undefined,
  refusedBy: undefined,
  protocol: 'http',
  method: '',
  host: '',
  path: '',
}

/**
 * Describes a finished exchange for the access log and metrics. The record is used again for the next
 * exchange, so nothing may keep it.
 */
export function accessRecordOf(context: RequestContext, kinds: BackendKinds): AccessRecord {
  const { exchange, placement, listener, backend, attempt, call } = context
  const place = placement?.place ?? listener?.place
  const error = exchange.error ?? context.error
  const { method, host, path } = context.original ?? originalOf(exchange)
  const subject = exchange.learned.jwt?.sub
  const grpc = context.isGrpc ? grpcStatus(exchange) : undefined
  const certificate = exchange.tls === undefined ? undefined : exchange.peerCertificate
  record.gateway = place?.gateway
  record.listener = place?.listener
  record.route = place?.route
  record.rule = place?.rule
  record.endpoint = attempt?.address.label ?? attempt?.address.pool
  record.backend = backend?.label
  record.reason = context.reason ?? error?.row.reason ?? 'Upstream'
  record.error = error === undefined ? context.refusal : textOf(error)
  record.bug = error?.code === 'bug' || error?.code === 'core_trapped' ? error : undefined
  // If the client left early, the status of the error is logged although it was never sent.
  record.status = exchange.sentStatus || (error?.row.status ?? 0)
  record.durationMs = exchange.endedAt - exchange.startedAt
  record.retries = context.retries
  record.grpcStatus = grpc === undefined ? undefined : Number(grpc)
  record.identity = certificate?.spiffeId ?? certificate?.subjectCn
  record.subject = typeof subject === 'string' ? subject : undefined
  record.traceId = context.trace?.traceId
  record.spanId = context.trace?.spanId
  record.exportedTrace = exportedTrace(context)
  record.record = call?.record
  record.accessLog = context.observers.accessLog
  record.metrics = context.observers.metrics
  record.refusedBy = isRefused(record.status, record.reason) ? refusingStep(context) : undefined
  record.protocol = exchange.tls === undefined ? 'http' : 'https'
  record.method = method
  record.host = host
  record.path = withoutCredentials(path, context, kinds)
  return record
}

/** The trace of a request whose spans are exported: its caller and the filter of the policy agree. */
function exportedTrace({ trace, observers, exchange }: RequestContext) {
  const isExported = trace?.isExported === true && observers.tracing?.accepts(exchange) === true
  return isExported ? trace : undefined
}

/** The step that was running, or one that responded later as a part of the backend. */
function refusingStep({ steps, exchange }: RequestContext): Step | undefined {
  const note = notesOf(exchange)?.findLast(({ source }) => source?.isResponse)
  const step = steps?.running ?? note?.source?.step ?? budgetsOf(exchange)?.refusedBy
  return step as Step | undefined
}

/** Redacts credentials in the query, including those that only backends of this rule accept. */
function withoutCredentials(
  path: string,
  { placement }: RequestContext,
  kinds: BackendKinds,
): string {
  const start = path.indexOf('?') + 1
  if (start === 0 || !mayNameCredential(path)) return path
  const keys = kinds.keyParameters(placement?.rule)
  const query = changeQuery(path.slice(start), (parameter, name, value) => {
    const isHidden = isCredentialParameter(name, value) || keys.has(name.toLowerCase())
    return isHidden ? `${parameter.split('=', 1)[0]}=${redacted}` : parameter
  })
  return path.slice(0, start) + (query ?? '')
}

/** Writes an error as `outermost place: …: text: detail`. */
function textOf(error: GatewayError): string {
  return [...error.where.toReversed(), error.message].join(': ')
}
