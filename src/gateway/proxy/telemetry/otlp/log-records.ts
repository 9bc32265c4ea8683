/** Entries of the access log, and their encoding for collectors (OTLP). */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import {
  ExportLogsServiceRequestSchema,
  type LogRecordSchema,
} from '../../../../../proto/gen/called/otlp_logs_pb.ts'
import type { ServerExchange } from '../../../../engines/http/contracts/requests.ts'
import type { AccessLogExport, Attribute } from '../../../../ground/exchange/observe.ts'
import type { AccessRecord } from '../types.ts'
import { requestAttributes } from './attributes.ts'
import type { Signal } from './exporter.ts'
import { encodeRequest, keyValue, sizeOfAttributes, unixNanoseconds } from './values.ts'

/** An entry of the access log, kept until it is exported. */
export interface LogRecord {
  /** When the request was over, in milliseconds of `performance.now()`. */
  readonly at: number
  readonly attributes: readonly Attribute[]
  /** 32 and 16 hexadecimal digits; undefined if the request has no trace. */
  readonly traceId: string | undefined
  readonly spanId: string | undefined
}

const traceFields: ReadonlySet<string> = new Set(['trace.id', 'span.id'])

/** Returns the entry of a finished exchange; undefined if the policy skips the exchange. */
export function logRecordOf(
  { accepts, changes }: AccessLogExport,
  exchange: ServerExchange,
  access: AccessRecord,
): LogRecord | undefined {
  if (!accepts(exchange)) return undefined
  const removed = changes?.removed
  return {
    at: exchange.endedAt,
    attributes: requestAttributes(access, exchange, changes, traceFields),
    traceId: removed?.has('trace.id') ? undefined : access.traceId,
    spanId: removed?.has('span.id') ? undefined : access.spanId,
  }
}

/** Severity number of INFO. */
const infoSeverity = 9

/** Bytes of ids, times and constants. */
const perRecord = 96

export const logSignal: Signal<LogRecord> = {
  path: '/v1/logs',
  method: '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
  sizeOf: ({ attributes }) => perRecord + sizeOfAttributes(attributes),
  encode: (resource, records, scope, isJson = false) =>
    encodeLogs(resource, records.map(logRecord), scope, isJson),
}

/** Encodes a request with log records. */
export function encodeLogs(
  resource: readonly Attribute[],
  logRecords: MessageInitShape<typeof LogRecordSchema>[],
  scope: { readonly name: string; readonly version: string },
  isJson: boolean,
): Uint8Array {
  const about = { attributes: resource.map(keyValue) }
  const resourceLogs = [{ resource: about, scopeLogs: [{ scope, logRecords }] }]
  const message = create(ExportLogsServiceRequestSchema, { resourceLogs })
  return encodeRequest(ExportLogsServiceRequestSchema, message, isJson)
}

function logRecord(from: LogRecord): MessageInitShape<typeof LogRecordSchema> {
  const time = unixNanoseconds(from.at)
  return {
    timeUnixNano: time,
    observedTimeUnixNano: time,
    severityNumber: infoSeverity,
    severityText: 'INFO',
    // The body does not describe the request, because policies can remove every attribute.
    body: { value: { case: 'stringValue', value: 'request' } },
    eventName: 'sluice.request',
    attributes: from.attributes.map(keyValue),
    traceId: Buffer.from(from.traceId ?? '', 'hex'),
    spanId: Buffer.from(from.spanId ?? '', 'hex'),
  }
}
