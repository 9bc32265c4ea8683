/**
 * Decision records as log records of the OpenTelemetry protocol. The body is the record as `sluice decisions -o json`
 * prints it; attributes have the names that the access log uses.
 */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { LogRecordSchema } from '../../../../../proto/gen/called/otlp_logs_pb.ts'
import type { Attribute, AttributeValue } from '../../../../ground/exchange/observe.ts'
import type { RecordedDecision } from '../../../../past/decisions/record.ts'
import type { Signal } from './exporter.ts'
import { encodeLogs, logSignal } from './log-records.ts'
import { anyValue, keyValue, sizeOf } from './values.ts'

/**
 * `basic` leaves out what may name persons: the address of the client, the query, header fields, and who the request
 * belongs to.
 */
export type ExportedFields = 'basic' | 'full'

/** A record that is ready to be sent. */
export interface DecisionLog {
  readonly decision: RecordedDecision
  readonly body: AttributeValue
}

export function decisionLogOf(decision: RecordedDecision, fields: ExportedFields): DecisionLog {
  const shown = fields === 'full' ? decision : basicOf(decision)
  return { decision: shown, body: attributeValue(shown) }
}

function basicOf(decision: RecordedDecision): RecordedDecision {
  const { query: _, ...request } = decision.request
  const details = Object.entries(decision.details).filter(([name]) => !name.startsWith('identity.'))
  return {
    ...decision,
    request: { ...request, source: '', headers: [], digestKey: '' },
    details: Object.fromEntries(details),
  }
}

/** Converts plain data. Whole numbers become integers; empty texts and lists, and undefined members are left out. */
function attributeValue(data: unknown): AttributeValue {
  if (typeof data === 'number') return Number.isSafeInteger(data) ? BigInt(data) : data
  if (Array.isArray(data)) return data.map(attributeValue)
  if (typeof data !== 'object' || data === null) return data as string | boolean
  const isEmpty = (value: unknown) =>
    value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  const members = Object.entries(data).filter(([, value]) => !isEmpty(value))
  return Object.fromEntries(members.map(([name, value]) => [name, attributeValue(value)]))
}

const perRecord = 256

export const decisionSignal: Signal<DecisionLog> = {
  path: logSignal.path,
  method: logSignal.method,
  sizeOf: ({ body }) => perRecord + sizeOf(body),
  encode: (resource, records, scope, isJson = false) =>
    encodeLogs(resource, records.map(logRecord), scope, isJson),
}

/** Severities of failures of the gateway or of a backend, of refusals, and of all others. */
const severities = {
  failed: { severityNumber: 17, severityText: 'ERROR' },
  refused: { severityNumber: 13, severityText: 'WARN' },
  passed: { severityNumber: 9, severityText: 'INFO' },
} as const

function severityOf({ status }: RecordedDecision['response']) {
  if (status >= 500 || status === 0) return severities.failed
  return status >= 400 ? severities.refused : severities.passed
}

function logRecord({ decision, body }: DecisionLog): MessageInitShape<typeof LogRecordSchema> {
  const startedMs = Date.parse(decision.time)
  return {
    timeUnixNano: nanos(startedMs + decision.response.durationMs),
    observedTimeUnixNano: nanos(Date.now()),
    ...severityOf(decision.response),
    eventName: 'sluice.decision',
    body: anyValue(body),
    attributes: attributesOf(decision).map(keyValue),
  }
}

const nanos = (ms: number): bigint => BigInt(Math.round(ms * 1_000)) * 1_000n

function attributesOf({ id, route, request, response, details }: RecordedDecision): Attribute[] {
  const all: (readonly [name: string, value: string | number | undefined])[] = [
    ['request.id', id],
    ['gateway', route.gateway],
    ['listener', route.listener],
    // The access log has no kind.
    ['route', route.route?.split(' ').at(-1)],
    ['route_rule', route.ruleName],
    ['backend', route.backend],
    ['endpoint', route.endpoint],
    ['http.method', request.method],
    ['http.host', request.host],
    ['http.path', request.path],
    ['http.status', response.status],
    ['reason', response.reason],
    ...Object.entries(details),
  ]
  return all.flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, attributeValue(value)] as const],
  )
}
