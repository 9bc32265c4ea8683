/** Encodes spans as an ExportTraceServiceRequest of the OpenTelemetry protocol. */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import {
  type AnyValueSchema,
  ExportTraceServiceRequestSchema,
  type KeyValueSchema,
  type SpanSchema,
} from '../../../../../proto/gen/called/otlp_trace_pb.ts'
import type { Attribute, AttributeValue } from '../../../../ground/exchange/observe.ts'

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

export function encodeSpans(
  resource: readonly Attribute[],
  spans: readonly FinishedSpan[],
  version: string,
): Uint8Array {
  const scope = { name: 'sluice', version }
  const message = create(ExportTraceServiceRequestSchema, {
    resourceSpans: [
      {
        resource: { attributes: resource.map(keyValue) },
        scopeSpans: [{ scope, spans: spans.map(span) }],
      },
    ],
  })
  return toBinary(ExportTraceServiceRequestSchema, message)
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

/** Converts a time. A double is precise enough for microseconds since 1970, but not for nanoseconds. */
function unixNanoseconds(at: number): bigint {
  return BigInt(Math.round((performance.timeOrigin + at) * 1_000)) * 1_000n
}

function keyValue([key, value]: Attribute): MessageInitShape<typeof KeyValueSchema> {
  return { key, value: anyValue(value) }
}

const minInt = -(2n ** 63n)
const maxInt = 2n ** 63n - 1n

function anyValue(value: AttributeValue): MessageInitShape<typeof AnyValueSchema> {
  switch (typeof value) {
    case 'string':
      return { value: { case: 'stringValue', value } }
    case 'boolean':
      return { value: { case: 'boolValue', value } }
    case 'number':
      return { value: { case: 'doubleValue', value } }
    case 'bigint':
      return value >= minInt && value <= maxInt
        ? { value: { case: 'intValue', value } }
        : { value: { case: 'stringValue', value: value.toString() } }
    default:
      return Array.isArray(value)
        ? { value: { case: 'arrayValue', value: { values: value.map(anyValue) } } }
        : { value: { case: 'kvlistValue', value: { values: Object.entries(value).map(keyValue) } } }
  }
}
