/** What `backend.mcp.guardrails` sets: services that check MCP messages. */
import {
  choice,
  type Infer,
  list,
  map,
  object,
  optional,
  required,
} from '../../../../ground/schema/field.ts'
import { backendObjectReference } from '../../../../ground/schema/shapes/references.ts'
import { celExpression, shortString } from '../../../../ground/schema/strings.ts'

const headerNames = list(shortString, { max: 64 })

const remote = object('MCPRemoteProcessor', {
  backendRef: required(
    backendObjectReference,
    'Service or GatewayBackend that implements ExtMcp over gRPC.',
  ),
  failureMode: optional(
    choice('MCPProcessorFailureMode', {
      FailClosed: 'the message is refused',
      FailOpen: 'the message passes as it is',
    }),
    { doc: 'What happens if the service fails.', default: 'FailClosed' },
  ),
  metadata: optional(map(celExpression, { max: 64 }), 'Values sent in metadata_context.'),
  allowedRequestHeaders: optional(
    headerNames,
    'Headers of the client that are sent to the service. If not set, all are sent.',
  ),
  disallowedRequestHeaders: optional(headerNames, 'Headers that are never sent.'),
})

const phase = choice('MCPProcessorPhase', {
  Off: 'the service is not asked',
  Request: 'requests',
  Response: 'results',
  Full: 'requests and results',
})

const processor = object('MCPProcessor', {
  remote: required(remote, 'The service.'),
  methods: required(
    map(phase, { max: 64 }),
    'What the service gets, by method. A key may have one `*`, such as `*/list`. The most specific key counts; other methods are not sent.',
  ),
})

export const guardrails = object('MCPGuardrails', {
  processors: required(
    list(processor, { min: 1, max: 16 }),
    'Services in the order in which they are asked.',
  ),
})
export type GuardrailsSpec = Infer<typeof guardrails>
