import type { References } from '../../model/references.ts'
import { choice, type Infer, list, object, optional, required } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { backendObjectReference } from '../../schema/shapes/references.ts'
import { logTracingAttributes } from '../../schema/shapes/telemetry.ts'
import { celExpression, shortString } from '../../schema/strings.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { TracingConfig } from './apply.ts'

const resourceAdd = object('ResourceAdd', {
  name: required(shortString, 'Name of the resource attribute.'),
  expression: required(celExpression, 'Value of the resource attribute.'),
})

const tracingSchema = object('Tracing', {
  backendRef: required(backendObjectReference, 'Service or GatewayBackend that takes OTLP.'),
  protocol: optional(
    choice('TracingProtocol', { HTTP: 'OTLP over HTTP', GRPC: 'OTLP over gRPC' }),
    { doc: 'How spans are sent.', default: 'HTTP' },
  ),
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
type TracingSpec = Infer<typeof tracingSchema>

const tracingField = sectionField({
  section: 'frontend',
  field: 'tracing',
  schema: tracingSchema,
  doc: 'Sends spans to an OpenTelemetry collector.',
})

/** Without a collector there is nowhere to send spans to, and the policy has no effect. */
function compile(spec: TracingSpec, references: References): Compiled<TracingConfig> {
  const { backendRef, protocol = 'HTTP', attributes, resources = [] } = spec
  const { randomSampling, clientSampling } = spec
  const target = references.backend(backendRef)
  if (typeof target === 'string') return { problems: [{ path: 'backendRef', message: target }] }
  const config = {
    target,
    protocol,
    resources,
    ...(attributes !== undefined && { attributes }),
    ...(randomSampling !== undefined && { randomSampling }),
    ...(clientSampling !== undefined && { clientSampling }),
  }
  return { config, problems: [] }
}

/** Sends spans of requests to an OpenTelemetry collector. */
export const tracing = definePolicy(tracingField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
