import {
  byteSize,
  type Infer,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../schema/field.ts'
import { exactlyOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { backendObjectReference } from '../../schema/shapes/references.ts'
import { celExpression, shortString } from '../../schema/strings.ts'

const expressions = map(celExpression, { max: 64 })
const headerNames = list(shortString, { max: 64 })

const grpc = object('AgentExtAuthGRPC', {
  contextExtensions: optional(
    map(text({ max: 4096 }), { max: 64 }),
    'Pairs sent in context_extensions of the check request.',
  ),
  requestMetadata: optional(
    expressions,
    'Values sent in metadata_context.filter_metadata. Where unset, the claims of a JWT policy are sent as envoy.filters.http.jwt_authn.',
  ),
})

const http = object('AgentExtAuthHTTP', {
  path: optional(celExpression, 'Path of the check request; the path of the request where unset.'),
  redirect: optional(
    celExpression,
    'Path, such as a sign-in page, that refused clients are sent to.',
  ),
  allowedRequestHeaders: optional(
    headerNames,
    'Client headers sent to the service beside Authorization.',
  ),
  addRequestHeaders: optional(expressions, 'Headers added to the check request.'),
  allowedResponseHeaders: optional(
    headerNames,
    'Headers of the answer that are copied into the request to the backend.',
  ),
  responseMetadata: optional(
    expressions,
    'Values made from the answer, visible to later expressions as extauthz.',
  ),
})

const extAuth = object(
  'ExtAuth',
  {
    backendRef: required(backendObjectReference, 'Service or GatewayBackend that is asked.'),
    grpc: optional(grpc, 'Asks over gRPC (envoy.service.auth.v3).'),
    http: optional(http, 'Asks over HTTP: 200 allows, every other status refuses.'),
    forwardBody: optional(
      object('ExtAuthBody', {
        maxSize: required(byteSize({ min: 1 }), {
          doc: 'Largest body that is buffered and sent; a larger one is answered 413.',
          unit: 'bytes',
        }),
      }),
      'Sends the request body too; no body where unset.',
    ),
  },
  { rules: [exactlyOneOf('grpc', 'http')] },
)
export type ExtAuthSpec = Infer<typeof extAuth>

export const extAuthField = sectionField({
  section: 'traffic',
  field: 'extAuth',
  schema: extAuth,
  doc: 'Asks an authorization service whether a request may pass.',
})
