/** Spans of requests (W3C Trace Context): one for the request and one for each attempt. */
import type { UpstreamAddress } from '../../../engines/http/sockets/upstream-address.ts'
import type { Attribute } from '../../../ground/exchange/observe.ts'
import type { RouteEntry } from '../config/port-table.ts'
import { requestAttributes } from '../telemetry/otlp/attributes.ts'
import type { FinishedSpan } from '../telemetry/otlp/spans.ts'
import type { AccessRecord } from '../telemetry/types.ts'
import type { RequestContext } from './request-context.ts'
import { openSpan, outboundAttributes, RequestTrace, rememberTrace } from './request-trace.ts'

const traceParentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Parses `traceparent`. A malformed header is ignored (W3C Trace Context 3.2.2). */
function parseTraceParent(text: string | readonly string[] | undefined) {
  const found = typeof text === 'string' ? traceParentPattern.exec(text) : null
  if (found === null) return undefined
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = found
  const isKnown = version !== 'ff' && (version !== '00' || rest === undefined)
  if (!isKnown || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & 0xff }
}

/**
 * Starts the trace of a request, if it gets spans. Runs before any policy, so that policies see the header.
 */
export function startTrace(context: RequestContext, random: () => number): void {
  const { tracing } = context.observers
  if (tracing === undefined) return
  const { headers } = context.exchange.request
  const parent = parseTraceParent(headers.lines('traceparent'))
  if (random() >= tracing.share(context.exchange, parent !== undefined)) return
  const trace = new RequestTrace(parent)
  context.trace = trace
  rememberTrace(context.exchange, trace)
  headers.set('traceparent', trace.header(trace.spanId))
}

/** Starts the span of an attempt. Called before the request is sent to an address. */
export function startAttemptSpan(context: RequestContext, address: UpstreamAddress): void {
  const { trace } = context
  if (trace === undefined) return
  endAttemptSpan(context)
  trace.attempt = { ...openSpan(), to: `${address.host}:${address.port}` }
  context.exchange.request.headers.set('traceparent', trace.header(trace.attempt.spanId))
}

/** Called when the attempt has connected to another address of the same host name. */
export function moveAttemptSpan({ trace }: RequestContext, { host, port }: UpstreamAddress): void {
  const attempt = trace?.attempt
  if (trace !== undefined && attempt !== undefined)
    trace.attempt = { ...attempt, to: `${host}:${port}` }
}

/** Ends the span of an attempt, with or without a response. */
export function endAttemptSpan(context: RequestContext, status?: number, error?: string): void {
  const { trace, exchange } = context
  const attempt = trace?.attempt
  if (trace === undefined || attempt === undefined) return
  trace.attempt = undefined
  const attributes = outboundAttributes('Primary', 'Http', exchange.request, status)
  const described = context.call?.describeAttempt?.()
  if (described !== undefined) attributes.push(...described.attributes)
  const name = described?.name ?? `${exchange.request.method} ${attempt.to}`
  trace.finishCall(attempt, { name, attributes, error })
}

/** The span of a call that is made for a request. Several calls may run at the same time. */
interface CallSpan {
  /** The `traceparent` header of the call. */
  readonly header: string
  /** Ends the span. Has no effect once the request is over. */
  end(error?: string): void
}

/** Starts the span of a call. Returns undefined if the request gets no spans. */
export function startCallSpan(
  context: RequestContext,
  name: string,
  attributes: readonly Attribute[],
): CallSpan | undefined {
  const { trace } = context
  if (trace === undefined) return undefined
  const span = openSpan()
  return {
    header: trace.header(span.spanId),
    end: (error) => {
      if (!context.over) trace.finishCall(span, { name, attributes, error })
    },
  }
}

/** Returns all spans of a finished request; empty if they are not exported. */
export function finishTrace(
  context: RequestContext,
  access: AccessRecord,
): readonly FinishedSpan[] {
  const { trace, exchange } = context
  if (trace === undefined) return []
  endAttemptSpan(context, undefined, access.error)
  if (access.exportedTrace === undefined) return []
  const changes = context.observers.tracing?.changes
  const attributes = requestAttributes(access, exchange, changes, notOfSpans, [
    ['url.scheme', access.protocol],
    ['network.protocol.version', exchange.request.version],
  ])
  const given = attributes.find(([name]) => name === 'span.name')?.[1]
  trace.finished.push({
    traceId: trace.traceId,
    spanId: trace.spanId,
    parentId: trace.parentId,
    name: typeof given === 'string' && given !== '' ? given : spanName(context, access),
    kind: 'server',
    startedAt: exchange.startedAt,
    endedAt: exchange.startedAt + access.durationMs,
    attributes: attributes.filter(([name]) => name !== 'span.name'),
    error: access.error,
    flags: trace.flags,
  })
  return trace.finished
}

/** Fields of the access log that are no attributes of spans. */
const notOfSpans = new Set(['error', 'trace.id', 'span.id'])

/**
 * Returns the name of the request's span. It has the path pattern of the route and not the path itself,
 * because there must be few span names.
 */
function spanName({ exchange, routed }: RequestContext, access: AccessRecord): string {
  if (routed === undefined) return 'unknown'
  const type = exchange.request.headers.get('content-type')
  if (type !== undefined && /^application\/grpc(?:\+|;|$)/i.test(type)) {
    return exchange.request.path.slice(1)
  }
  return `${access.method} ${matchedPath(routed, exchange.request.path)}`
}

function matchedPath({ prefix, placement: { rule } }: RouteEntry, path: string): string {
  if (prefix !== undefined) return prefix.endsWith('/') ? `${prefix}*` : `${prefix}/*`
  const paths = rule.resource.matches.map((match) => match.path)
  const exact = paths.find((match) => match?.type === 'Exact' && match.value === path)
  return (exact ?? paths.find((match) => match?.type === 'RegularExpression'))?.value ?? '*'
}
