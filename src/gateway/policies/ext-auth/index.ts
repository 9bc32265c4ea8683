import { secretsOfLiterals } from '../../../ground/model/inline-secrets.ts'
import { calledBackend, type References } from '../../../ground/model/references.ts'
import {
  boolean,
  byteSize,
  choice,
  type Infer,
  integer,
  list,
  map,
  object,
  optional,
  required,
  text,
} from '../../../ground/schema/field.ts'
import { exactlyOneOf } from '../../../ground/schema/rules.ts'
import { backendObjectReference } from '../../../ground/schema/shapes/references.ts'
import { celExpression, durationOrExpression, shortString } from '../../../ground/schema/strings.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../define.ts'
import type { ExtAuthConfig, GrpcAuthorization, HttpAuthorization } from './config.ts'
import { compileFilter, type ExternalAuthFilter } from './filter.ts'
import { lowerNames, nameProblem, nameProblems } from './names.ts'

const expressions = map(celExpression, { max: 64 })
const headerNames = list(shortString, { max: 64 })
const defaultEntries = 10_000

const grpc = object('AgentExtAuthGRPC', {
  allowedRequestHeaders: optional(
    headerNames,
    'Client headers that are sent to the service. If not set, all are sent.',
  ),
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
  allowedClientHeaders: optional(
    headerNames,
    'Headers of a refusal that the client gets, in addition to Content-Type, Location and WWW-Authenticate. If not set, it gets all.',
  ),
  allowedClientHeadersOnSuccess: optional(
    headerNames,
    'Headers of the answer that are added to the response of an allowed request.',
  ),
  body: optional(
    celExpression,
    'Body of the check request. If not set, forwardBody applies. If the expression fails, the request is refused.',
  ),
  responseMetadata: optional(
    expressions,
    'Values computed from the answer. Later expressions can read them as extauthz.',
  ),
})

const cache = object('ExtAuthCache', {
  key: required(
    list(celExpression, { min: 1, max: 16 }),
    'Expressions whose values select a cached answer. They must cover everything that the service looks at. Unless one reads jwt, apiKey, basicAuth, identity, or the Authorization or Cookie header, the key also has the caller. If one fails, the service is asked.',
  ),
  ttl: required(
    durationOrExpression,
    'How long an answer is valid: a duration such as 30s, or an expression that gives a duration or a timestamp. It may read response (over HTTP) and extauthz.',
  ),
  maxEntries: optional(integer({ min: 0, max: 1_000_000 }), {
    doc: 'Maximum number of answers that each worker keeps, of at most 16 MiB together.',
    default: defaultEntries,
  }),
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
        allowPartialMessage: optional(boolean(), {
          doc: 'Sends the first maxSize bytes of larger bodies instead of refusing them. The service does not see the rest.',
          default: false,
        }),
        packAsBytes: optional(boolean(), {
          doc: 'Sends bodies over gRPC as raw_body even if they are UTF-8.',
          default: false,
        }),
      }),
      'Sends the request body too. If not set, no body is sent.',
    ),
    failureMode: optional(
      choice('ExtAuthFailureMode', {
        FailClosed: 'the request is refused with 403',
        FailOpen: 'the request passes, which is recorded',
      }),
      {
        doc: 'What happens if the service cannot be reached, answers with 5xx, or answers with a gRPC status other than PERMISSION_DENIED and UNAUTHENTICATED.',
        default: 'FailClosed',
      },
    ),
    cache: optional(
      cache,
      'Applies answers of the service to later requests. Failures are never cached.',
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
  const problems = [
    ...(http === undefined ? [] : headerProblems(http)),
    ...nameProblems('grpc.allowedRequestHeaders', grpc?.allowedRequestHeaders),
  ]
  const target = calledBackend(references, backendRef)
  if (typeof target === 'string') {
    return { problems: [{ path: 'backendRef', message: target }, ...problems] }
  }
  if (problems.length > 0) return { problems }
  const config = {
    target,
    maxBodyBytes: forwardBody?.maxSize,
    ...(forwardBody?.allowPartialMessage === true && { allowsPartialBody: true }),
    ...(spec.failureMode === 'FailOpen' && { failsOpen: true }),
    ...(spec.cache && { cache: { maxEntries: defaultEntries, ...spec.cache } }),
    http: http && httpConfig(http),
    grpc: grpc && grpcConfig(grpc, forwardBody?.packAsBytes),
  }
  const secrets = addedSecrets(http?.addRequestHeaders)
  return { config, problems, secrets, notes: notesOf(spec) }
}

/** Returns a note if the key of a cache does not cover the body that the service receives. */
function notesOf({ cache: { key } = { key: [], ttl: '' }, forwardBody }: ExtAuthSpec): string[] {
  const isMissing =
    key.length > 0 && forwardBody !== undefined && key.every((one) => !one.includes('request.body'))
  return isMissing
    ? ['cache.key: no expression reads request.body, but the service receives the body']
    : []
}

function grpcConfig(
  { allowedRequestHeaders, ...grpc }: NonNullable<ExtAuthSpec['grpc']>,
  packAsBytes = false,
): GrpcAuthorization {
  return {
    contextExtensions: {},
    ...grpc,
    ...(allowedRequestHeaders && { allowedRequestHeaders: lowerNames(allowedRequestHeaders) }),
    ...(packAsBytes && { packAsBytes }),
  }
}

function headerProblems(http: HttpSpec): PolicyProblem[] {
  const added = Object.keys(http.addRequestHeaders ?? {}).flatMap((name): PolicyProblem[] => {
    const message = nameProblem(name)
    return message === undefined ? [] : [{ path: `http.addRequestHeaders.${name}`, message }]
  })
  return [
    ...nameProblems('http.allowedRequestHeaders', http.allowedRequestHeaders),
    ...nameProblems('http.allowedResponseHeaders', http.allowedResponseHeaders),
    ...nameProblems('http.allowedClientHeaders', http.allowedClientHeaders),
    ...nameProblems('http.allowedClientHeadersOnSuccess', http.allowedClientHeadersOnSuccess),
    ...added,
  ]
}

const addedSecrets = (added: HttpSpec['addRequestHeaders'] = {}) =>
  secretsOfLiterals(Object.entries(added).map(([name, expression]) => ({ name, expression })))

function httpConfig(http: HttpSpec): HttpAuthorization {
  const digests = addedSecrets(http.addRequestHeaders).map(({ digest }) => digest)
  const { allowedClientHeaders: refused, allowedClientHeadersOnSuccess: allowed } = http
  return {
    ...http,
    ...(refused && { allowedClientHeaders: lowerNames(refused) }),
    ...(allowed && { allowedClientHeadersOnSuccess: lowerNames(allowed) }),
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
    { path: 'cache.ttl', point: 'authAnswer', early: 'earlyAuthAnswer' },
    { path: '', point: 'traffic', early: 'earlyExtAuth' },
  ],
  compile,
  apply: () => import('./apply.ts'),
})
