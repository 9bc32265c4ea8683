/** Spans, and their encoding for collectors (OTLP). */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import {
  ExportTraceServiceRequestSchema,
  type SpanSchema,
} from '../../../../../proto/gen/called/otlp_trace_pb.ts'
import type { Attribute } from '../../../../ground/exchange/observe.ts'
import type { Signal } from './exporter.ts'
import { encodeRequest, keyValue, sizeOfAttributes, unixNanoseconds } from './values.ts'

/** A finished span, kept until it is exported. */
export interface FinishedSpan {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  /** Span id of the parent; undefined for the root of a trace. */
  readonly parentId: string | undefined
  readonly name: string
  readonly kind: 'server' | 'client'
  /** Start and end are in milliseconds of `performance.now()`. */
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: readonly Attribute[]
  /** Text of the error; undefined if the gateway met none. */
  readonly error: string | undefined
  /** Flags of the trace (W3C Trace Context). */
  readonly flags: number
}

const kinds = { server: 2, client: 3 } as const
const errorCode = 2

/** Bytes of ids and times. */
const perSpan = 96

export const spanSignal: Signal<FinishedSpan> = {
  path: '/v1/traces',
  method: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
  sizeOf: ({ attributes, name, error = '' }) =>
    perSpan + name.length + error.length + sizeOfAttributes(attributes),
  encode(resource, spans, scope, isJson = false) {
    const message = create(ExportTraceServiceRequestSchema, {
      resourceSpans: [
        {
          resource: { attributes: resource.map(keyValue) },
          scopeSpans: [{ scope, spans: spans.map(span) }],
        },
      ],
    })
    return encodeRequest(ExportTraceServiceRequestSchema, message, isJson)
  },
}

function span(from: FinishedSpan): MessageInitShape<typeof SpanSchema> {
  return {
    traceId: Buffer.from(from.traceId, 'hex'),
    spanId: Buffer.from(from.spanId, 'hex'),
    parentSpanId: Buffer.from(from.parentId ?? '', 'hex'),
    name: from.name,
    kind: kinds[from.kind],
    startTimeUnixNano: unixNanoseconds(from.startedAt),
    endTimeUnixNano: unixNanoseconds(from.endedAt),
    attributes: from.attributes.map(keyValue),
    flags: from.flags,
    ...(from.error !== undefined && { status: { code: errorCode, message: from.error } }),
  }
}
