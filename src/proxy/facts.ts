import { isKeyParameter } from '../auth/vendor-keys.ts'
import { isCredentialName, mayNameCredential, redacted } from '../base/credential-names.ts'
import { changeQuery } from '../base/query-string.ts'
import type { GatewayError } from '../errors.ts'
import type { PeerCertificate } from '../exchange/exchange.ts'
import { grpcStatus } from '../variables/index.ts'
import { leadsToModels } from './llm/model-route.ts'
import type { PhaseContext } from './phase-context.ts'
import type { RequestFacts } from './telemetry/types.ts'
import { originalOf, type Walk } from './walk.ts'

/** What log and metrics learn of a finished exchange. */
export function factsOf(walk: Walk, context: Pick<PhaseContext, 'config'>): RequestFacts {
  const { exchange, placement, listener, backend, address } = walk
  const place = placement?.place ?? listener?.place
  const error = exchange.error ?? walk.error
  // Named one by one: spreading makes a slower object, once for each request.
  const { method, host, path } = walk.original ?? originalOf(exchange)
  const subject = exchange.learned.jwt?.sub
  return {
    gateway: place?.gateway,
    listener: place?.listener,
    route: place?.route,
    rule: place?.rule,
    endpoint: address?.label ?? address?.pool,
    backend: backend?.label,
    reason: walk.reason ?? error?.row.reason ?? 'Upstream',
    error: error === undefined ? walk.refusal : textOf(error),
    bug: error?.code === 'bug' || error?.code === 'core_trapped' ? error : undefined,
    model: walk.modelFacts,
    // A client that left early is logged with the status that says so, although it was not sent.
    status: exchange.sentStatus || (error?.row.status ?? 0),
    durationMs: exchange.endedAt - exchange.startedAt,
    retries: walk.retries,
    grpcStatus: walk.isGrpc ? numberOf(grpcStatus(exchange)) : undefined,
    identity: exchange.tls === undefined ? undefined : identityOf(exchange.peerCertificate),
    subject: typeof subject === 'string' ? subject : undefined,
    traceId: walk.trace?.traceId,
    spanId: walk.trace?.spanId,
    mcp: walk.mcpFacts,
    pool: walk.pool,
    accessLog: walk.observers.accessLog,
    protocol: exchange.tls === undefined ? 'http' : 'https',
    method,
    host,
    path: withoutCredentials(path, walk, context),
  }
}

/** `?key=` is a credential of model vendors, and an ordinary parameter of others. */
function withoutCredentials(
  path: string,
  { placement }: Walk,
  context: Pick<PhaseContext, 'config'>,
): string {
  const start = path.indexOf('?') + 1
  if (start === 0 || !mayNameCredential(path)) return path
  const mayBeModel = placement === undefined || leadsToModels(placement.rule, context)
  const query = changeQuery(path.slice(start), (parameter, name) => {
    const isHidden = isCredentialName(name) || (mayBeModel && isKeyParameter(name))
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
