/**
 * Spans of requests (W3C Trace Context): one for the request, one for each attempt to send it on. A
 * request that is not sampled costs one look at its headers, and without a policy nothing at all.
 */
import { performance } from 'node:perf_hooks'
import type { UpstreamAddress } from '../../engine/sockets/upstream-address.ts'
import type { Attribute } from '../../exchange/observe.ts'
import { eachField } from '../telemetry/access-fields.ts'
import type { FinishedSpan } from '../telemetry/otlp/span.ts'
import type { RequestFacts } from '../telemetry/types.ts'
import type { RequestContext } from './request-context.ts'
import { newSpanId, RequestTrace, rememberTrace } from './request-trace.ts'

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** A header that breaks the rules counts as absent (W3C Trace Context 3.2.2). */
function parseTraceParent(text: string | readonly string[] | undefined) {
  const found = typeof text === 'string' ? form.exec(text) : null
  if (found === null) return undefined
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = found
  const isKnown = version !== 'ff' && (version !== '00' || rest === undefined)
  if (!isKnown || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & 0xff }
}

/** Decides whether the request gets spans; before any policy, which may then see its header. */
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

/** The request is about to be sent to an address. */
export function startAttemptSpan(context: RequestContext, address: UpstreamAddress): void {
  const { trace } = context
  if (trace === undefined) return
  endAttemptSpan(context)
  const to = `${address.host}:${address.port}`
  trace.attempt = { spanId: newSpanId(), startedAt: performance.now(), to }
  context.exchange.request.headers.set('traceparent', trace.header(trace.attempt.spanId))
}

/** Another address of the name is connected to. */
export function moveAttemptSpan({ trace }: RequestContext, { host, port }: UpstreamAddress): void {
  const attempt = trace?.attempt
  if (trace !== undefined && attempt !== undefined)
    trace.attempt = { ...attempt, to: `${host}:${port}` }
}

/** A response has come, or will not come. */
export function endAttemptSpan(context: RequestContext, status?: number, error?: string): void {
  const { trace, exchange } = context
  const attempt = trace?.attempt
  if (trace === undefined || attempt === undefined) return
  trace.attempt = undefined
  const { method, authority, path } = exchange.request
  const attributes: Attribute[] = [
    ['sluice.outbound.kind', 'Primary'],
    ['sluice.outbound.subtype', 'Http'],
    ['http.method', method],
    ['http.host', authority],
    ['http.path', path],
  ]
  if (status !== undefined) attributes.push(['http.status', BigInt(status)])
  const described = context.call?.describeAttempt?.()
  if (described !== undefined) attributes.push(...described.attributes)
  trace.finished.push({
    traceId: trace.traceId,
    spanId: attempt.spanId,
    parentId: trace.spanId,
    name: described?.name ?? `${method} ${attempt.to}`,
    kind: 'client',
    startedAt: attempt.startedAt,
    endedAt: performance.now(),
    attributes,
    error,
    flags: trace.flags,
  })
}

/** A call that is made for a request, beside others perhaps. */
interface CallSpan {
  /** `traceparent` for whoever is called. */
  readonly header: string
  /** The call is over; nothing is noted once the request is. */
  end(error?: string): void
}

/** Undefined where the request gets no span. */
export function startCallSpan(
  context: RequestContext,
  name: string,
  attributes: readonly Attribute[],
): CallSpan | undefined {
  const { trace } = context
  if (trace === undefined) return undefined
  const spanId = newSpanId()
  const startedAt = performance.now()
  return {
    header: trace.header(spanId),
    end: (error) => {
      if (context.over) return
      trace.finished.push({
        traceId: trace.traceId,
        spanId,
        parentId: trace.spanId,
        name,
        kind: 'client',
        startedAt,
        endedAt: performance.now(),
        attributes: [...attributes],
        error,
        flags: trace.flags,
      })
    },
  }
}

/** All spans of a request that is over; none where the caller wants none kept. */
export function finishTrace(context: RequestContext, facts: RequestFacts): readonly FinishedSpan[] {
  const { trace, exchange } = context
  if (trace === undefined) return []
  endAttemptSpan(context, undefined, facts.error)
  if (!trace.isExported) return []
  const attributes = attributesOf(context, facts)
  const given = attributes.find(([name]) => name === 'span.name')?.[1]
  trace.finished.push({
    traceId: trace.traceId,
    spanId: trace.spanId,
    parentId: trace.parentId,
    name: typeof given === 'string' && given !== '' ? given : spanName(context, facts),
    kind: 'server',
    startedAt: exchange.startedAt,
    endedAt: exchange.startedAt + facts.durationMs,
    attributes: attributes.filter(([name]) => name !== 'span.name'),
    error: facts.error,
    flags: trace.flags,
  })
  return trace.finished
}

const notOfSpans = new Set(['error', 'trace.id', 'span.id'])

/** The fields of the access log, what spans have besides, and what the policy changes. */
function attributesOf(context: RequestContext, facts: RequestFacts): Attribute[] {
  const { exchange, observers } = context
  const attributes: Attribute[] = []
  eachField(facts, exchange, (name, value) => {
    if (value === undefined || value === '' || notOfSpans.has(name)) return
    attributes.push([name, Number.isInteger(value) ? BigInt(value) : value])
  })
  attributes.push(['url.scheme', facts.protocol])
  attributes.push(['network.protocol.version', exchange.request.version])
  const changes = observers.tracing?.changes
  if (changes === undefined) return attributes
  const added = changes.added(exchange)
  const kept = attributes.filter(
    ([name]) => !changes.removed.has(name) && !added.some(([replaced]) => replaced === name),
  )
  return [...kept, ...added]
}

/** Low in cardinality: the pattern that the path matched, never the path. */
function spanName({ exchange, prefix, placement }: RequestContext, facts: RequestFacts): string {
  if (placement === undefined) return 'unknown'
  const type = exchange.request.headers.get('content-type')
  if (type !== undefined && /^application\/grpc(?:\+|;|$)/i.test(type)) {
    return exchange.request.path.slice(1)
  }
  return `${facts.method} ${matchedPath(prefix, placement, exchange.request.path)}`
}

function matchedPath(
  prefix: string | undefined,
  { rule }: NonNullable<RequestContext['placement']>,
  path: string,
): string {
  if (prefix !== undefined) return prefix.endsWith('/') ? `${prefix}*` : `${prefix}/*`
  const paths = rule.resource.matches.map((match) => match.path)
  const exact = paths.find((match) => match?.type === 'Exact' && match.value === path)
  return (exact ?? paths.find((match) => match?.type === 'RegularExpression'))?.value ?? '*'
}
