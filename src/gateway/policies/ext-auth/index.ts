import { secretsOfLiterals } from '../../../ground/model/inline-secrets.ts'
import { calledBackend, type References } from '../../../ground/model/references.ts'
import {
  byteSize,
  type Infer,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../../ground/schema/field.ts'
import { exactlyOneOf } from '../../../ground/schema/rules.ts'
import { backendObjectReference } from '../../../ground/schema/shapes/references.ts'
import { celExpression, shortString } from '../../../ground/schema/strings.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../define.ts'
import type { ExtAuthConfig, HttpAuthorization } from './config.ts'
import { compileFilter, type ExternalAuthFilter } from './filter.ts'
import { lowerNames, nameProblem, nameProblems } from './names.ts'

const expressions = map(celExpression, { max: 64 })
const headerNames = list(shortString, { max: 64 })

const grpc = object('AgentExtAuthGRPC', {
  contextExtensions: optional(
    map(text({ max: 4096 }), { max: 64 }),
    'Pairs sent in context_extensions of the check request.',
  ),
  requestMetadata: optional(
    expressions,
    'Values sent in metadata_context.filter_metadata. If not set, the claims of a JWT policy are sent as envoy.filters.http.jwt_authn.',
  ),
})

const http = object('AgentExtAuthHTTP', {
  path: optional(celExpression, 'Path of the check request; the path of the request if not set.'),
  redirect: optional(
    celExpression,
    'Path, such as a sign-in page, that refused clients are sent to.',
  ),
  allowedRequestHeaders: optional(
    headerNames,
    'Client headers that are sent to the service in addition to Authorization.',
  ),
  addRequestHeaders: optional(expressions, {
    doc: 'Headers added to the check request.',
    secret: 'headerExpression',
  }),
  allowedResponseHeaders: optional(
    headerNames,
    'Headers of the answer that are copied into the request to the backend.',
  ),
  responseMetadata: optional(
    expressions,
    'Values computed from the answer. Later expressions can read them as extauthz.',
  ),
})

const extAuthSchema = object(
  'ExtAuth',
  {
    backendRef: required(
      backendObjectReference,
      'Service or GatewayBackend of the authorization service.',
    ),
    grpc: optional(grpc, 'Calls the service over gRPC (envoy.service.auth.v3).'),
    http: optional(
      http,
      'Calls the service over HTTP. Status 200 allows the request, every other status refuses it.',
    ),
    forwardBody: optional(
      object('ExtAuthBody', {
        maxSize: required(byteSize({ min: 1 }), {
          doc: 'Maximum size of the body that is buffered and sent. Requests with larger bodies get 413.',
          unit: 'bytes',
        }),
      }),
      'Sends the request body too. If not set, no body is sent.',
    ),
  },
  { rules: [exactlyOneOf('grpc', 'http')] },
)
type ExtAuthSpec = Infer<typeof extAuthSchema>

type HttpSpec = NonNullable<ExtAuthSpec['http']>

/** If the service cannot be resolved, all requests that the policy or filter applies to are rejected. */
function compile(
  spec: ExtAuthSpec | ExternalAuthFilter,
  references: References,
): Compiled<ExtAuthConfig> {
  if ('protocol' in spec) return compileFilter(spec, references)
  const { backendRef, http, grpc, forwardBody } = spec
  const problems = http === undefined ? [] : headerProblems(http)
  const target = calledBackend(references, backendRef)
  if (typeof target === 'string') {
    return { problems: [{ path: 'backendRef', message: target }, ...problems] }
  }
  if (problems.length > 0) return { problems }
  const config = {
    target,
    maxBodyBytes: forwardBody?.maxSize,
    http: http && httpConfig(http),
    grpc: grpc && { contextExtensions: {}, ...grpc },
  }
  return { config, problems, secrets: addedSecrets(http?.addRequestHeaders) }
}

function headerProblems(http: HttpSpec): PolicyProblem[] {
  const added = Object.keys(http.addRequestHeaders ?? {}).flatMap((name): PolicyProblem[] => {
    const message = nameProblem(name)
    return message === undefined ? [] : [{ path: `http.addRequestHeaders.${name}`, message }]
  })
  return [
    ...nameProblems('http.allowedRequestHeaders', http.allowedRequestHeaders),
    ...nameProblems('http.allowedResponseHeaders', http.allowedResponseHeaders),
    ...added,
  ]
}

const addedSecrets = (added: HttpSpec['addRequestHeaders'] = {}) =>
  secretsOfLiterals(Object.entries(added).map(([name, expression]) => ({ name, expression })))

function httpConfig(http: HttpSpec): HttpAuthorization {
  const digests = addedSecrets(http.addRequestHeaders).map(({ digest }) => digest)
  return {
    ...http,
    ...(digests.length > 0 && { digests }),
    allowedRequestHeaders: lowerNames(http.allowedRequestHeaders),
    addRequestHeaders: http.addRequestHeaders ?? {},
    allowedResponseHeaders: lowerNames(http.allowedResponseHeaders),
  }
}

/** Asks an authorization service whether a request may pass. */
export const extAuth = definePolicy({
  section: 'traffic',
  field: 'extAuth',
  schema: extAuthSchema,
  doc: 'Asks an authorization service whether a request is allowed.',
  security: true,
  conditional: 'always one',
  preRouting: true,
  seesAllHeaders: true,
  expressions: [
    { path: 'http.responseMetadata', point: 'authAnswer', early: 'earlyAuthAnswer' },
    { path: '', point: 'traffic', early: 'earlyExtAuth' },
  ],
  compile,
  apply: () => import('./apply.ts'),
})
