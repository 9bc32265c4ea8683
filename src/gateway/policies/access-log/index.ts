import { object, optional, required } from '../../../ground/schema/field.ts'
import { backendObjectReference } from '../../../ground/schema/shapes/references.ts'
import {
  exportPath,
  exportProtocol,
  logTracingAttributes,
} from '../../../ground/schema/shapes/telemetry.ts'
import { celExpression } from '../../../ground/schema/strings.ts'
import { definePolicy } from '../define.ts'

const otlp = object('OtlpAccessLog', {
  backendRef: required(backendObjectReference, 'Service or GatewayBackend that receives OTLP.'),
  protocol: optional(exportProtocol, { doc: 'How entries are sent.', default: 'GRPC' }),
  path: optional(exportPath, { doc: 'Path of requests over HTTP.', default: '/v1/logs' }),
  filter: optional(
    celExpression,
    'An entry is sent only if this is true. If not set, accessLog.filter applies.',
  ),
  attributes: optional(
    logTracingAttributes,
    'Changes to the attributes of entries. If not set, accessLog.attributes apply.',
  ),
})

/** Decides which requests are logged, which attributes log entries have, and which collector gets them too. */
export const accessLog = definePolicy({
  section: 'frontend',
  field: 'accessLog',
  schema: object('AccessLog', {
    filter: optional(celExpression, 'A line is written only if this is true.'),
    attributes: optional(logTracingAttributes, 'Changes to the fields of a line.'),
    otlp: optional(otlp, 'Sends entries to an OpenTelemetry collector too.'),
  }),
  doc: 'Fields and filter of the access log.',
  security: false,
  expressions: [{ path: '', point: 'observation' }],
  // Expressions are checked for all kinds in derive/expressions.ts.
  compile({ filter, attributes, otlp: sent }, references) {
    const log = { filter, attributes }
    if (sent === undefined) return { config: log, problems: [] }
    const { backendRef, protocol = 'GRPC', ...rest } = sent
    const target = references.backend(backendRef)
    if (typeof target !== 'string') {
      return { config: { ...log, otlp: { target, protocol, ...rest } }, problems: [] }
    }
    return { config: log, problems: [{ path: 'otlp.backendRef', message: target }] }
  },
  apply: () => import('./apply.ts'),
})
