import { list, object, optional, required } from '../../../ground/schema/field.ts'
import { backendObjectReference } from '../../../ground/schema/shapes/references.ts'
import {
  exportPath,
  exportProtocol,
  logTracingAttributes,
} from '../../../ground/schema/shapes/telemetry.ts'
import { celExpression, shortString } from '../../../ground/schema/strings.ts'
import { definePolicy } from '../define.ts'

const resourceAdd = object('ResourceAdd', {
  name: required(shortString, 'Name of the resource attribute.'),
  expression: required(celExpression, 'Value of the resource attribute.'),
})

const tracingSchema = object('Tracing', {
  backendRef: required(backendObjectReference, 'Service or GatewayBackend that receives OTLP.'),
  protocol: optional(exportProtocol, { doc: 'How spans are sent.', default: 'HTTP' }),
  path: optional(exportPath, {
    doc: 'Path of requests over HTTP.',
    default: '/v1/traces',
  }),
  filter: optional(celExpression, 'Spans of a request are sent only if this is true.'),
  attributes: optional(logTracingAttributes, 'Changes to the attributes of spans.'),
  resources: optional(list(resourceAdd, { max: 256 }), 'Attributes that describe the proxy.'),
  randomSampling: optional(celExpression, {
    doc: 'Share (0.0 to 1.0, or true or false) of requests without a trace that start one.',
    default: 'false',
  }),
  clientSampling: optional(celExpression, {
    doc: 'Share (0.0 to 1.0, or true or false) of requests with a trace that get a span.',
    default: 'true',
  }),
})

/** Sends spans to an OpenTelemetry collector. If the collector cannot be resolved, it has no effect. */
export const tracing = definePolicy({
  section: 'frontend',
  field: 'tracing',
  schema: tracingSchema,
  doc: 'Sends spans to an OpenTelemetry collector.',
  security: false,
  expressions: [
    { path: 'attributes', point: 'observation' },
    { path: 'filter', point: 'observation' },
    { path: 'resources', point: 'process' },
    { path: '', point: 'sampling' },
  ],
  compile({ backendRef, protocol = 'HTTP', resources = [], ...rest }, references) {
    const target = references.backend(backendRef)
    if (typeof target === 'string') return { problems: [{ path: 'backendRef', message: target }] }
    return { config: { target, protocol, resources, ...rest }, problems: [] }
  },
  apply: () => import('./apply.ts'),
})
