import { randomBytes } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { CalloutSubtype, Exchange, RequestHead } from '../../../ground/exchange/exchange.ts'
import type { Attribute } from '../../../ground/exchange/observe.ts'
import type { FinishedSpan } from '../telemetry/otlp/spans.ts'

interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly flags: number
}

/** A span that has begun: of an attempt, or of another call for the request. */
export interface OpenSpan {
  readonly spanId: string
  /** When the span started, in milliseconds of `performance.now()`. */
  readonly startedAt: number
}

export const openSpan = (): OpenSpan => ({ spanId: newSpanId(), startedAt: performance.now() })

/** Returns the attributes of a span of an outbound request. */
export function outboundAttributes(
  kind: 'Primary' | 'Policy',
  subtype: CalloutSubtype,
  { method, authority, path }: Pick<RequestHead, 'method' | 'authority' | 'path'>,
  status: number | undefined,
): Attribute[] {
  const attributes: Attribute[] = [
    ['sluice.outbound.kind', kind],
    ['sluice.outbound.subtype', subtype],
    ['http.method', method],
    ['http.host', authority],
    ['http.path', path],
  ]
  if (status !== undefined) attributes.push(['http.status', BigInt(status)])
  return attributes
}

/** The trace that a request belongs to (W3C Trace Context), and its spans so far. */
export class RequestTrace {
  readonly traceId: string
  readonly spanId = newSpanId()
  readonly parentId: string | undefined
  readonly flags: number
  readonly finished: FinishedSpan[] = []
  /** The span of the running attempt, and the `host:port` that the attempt goes to. */
  attempt: (OpenSpan & { readonly to: string }) | undefined

  constructor(parent: TraceParent | undefined) {
    this.traceId = parent?.traceId ?? randomBytes(16).toString('hex')
    this.parentId = parent?.spanId
    this.flags = parent?.flags ?? 1
  }

  /** Returns the `traceparent` header of a request that is sent within a span of this trace. */
  header(spanId: string): string {
    return `00-${this.traceId}-${spanId}-${this.flags.toString(16).padStart(2, '0')}`
  }

  /** Ends the span of a request that the gateway sent. */
  finishCall({ spanId, startedAt }: OpenSpan, call: FinishedCall): void {
    this.finished.push({
      traceId: this.traceId,
      spanId,
      parentId: this.spanId,
      kind: 'client',
      startedAt,
      endedAt: performance.now(),
      flags: this.flags,
      ...call,
    })
  }

  /** Whether the spans are exported. If the caller does not sample the trace, only its ids are passed on. */
  get isExported(): boolean {
    return (this.flags & 1) === 1
  }
}

type FinishedCall = Pick<FinishedSpan, 'name' | 'attributes' | 'error'>

const newSpanId = (): string => randomBytes(8).toString('hex')

const traceExtension = 'trace'

/** Returns the trace of an exchange, for calls that are made on its behalf. */
export function traceOf({ extensions }: Exchange): RequestTrace | undefined {
  return extensions.size === 0
    ? undefined
    : (extensions.get(traceExtension) as RequestTrace | undefined)
}

/** Stores the trace where `traceOf` finds it. */
export function rememberTrace({ extensions }: Exchange, trace: RequestTrace): void {
  extensions.set(traceExtension, trace)
}
