import type { References } from '../../model/references.ts'
import type { Compiled, PolicyProblem } from '../define.ts'
import type { ExtAuthConfig, GrpcAuthorization, HttpAuthorization } from './config.ts'
import { compileFilter, type ExternalAuthFilter } from './filter.ts'
import { lowerNames, nameProblem, nameProblems } from './names.ts'
import type { ExtAuthSpec } from './schema.ts'

type HttpSpec = NonNullable<ExtAuthSpec['http']>
type GrpcSpec = NonNullable<ExtAuthSpec['grpc']>

/** A service that cannot be reached closes what the policy, or the filter, covers. */
export function compile(
  spec: ExtAuthSpec | ExternalAuthFilter,
  references: References,
): Compiled<ExtAuthConfig> {
  if ('protocol' in spec) return compileFilter(spec, references)
  const { backendRef, http, grpc, forwardBody } = spec
  const problems = http === undefined ? [] : headerProblems(http)
  const target = references.backend(backendRef)
  if (typeof target === 'string' || target.type === 'invalid') {
    const message = typeof target === 'string' ? target : target.message
    return { problems: [{ path: 'backendRef', message }, ...problems] }
  }
  if (problems.length > 0) return { problems }
  const config: ExtAuthConfig = {
    target,
    ...(forwardBody && { maxBodyBytes: forwardBody.maxSize }),
    ...(http && { http: httpConfig(http) }),
    ...(grpc && { grpc: grpcConfig(grpc) }),
  }
  return { config, problems }
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

function httpConfig({ path, redirect, responseMetadata, ...http }: HttpSpec): HttpAuthorization {
  return {
    ...(path !== undefined && { path }),
    ...(redirect !== undefined && { redirect }),
    allowedRequestHeaders: lowerNames(http.allowedRequestHeaders),
    addRequestHeaders: http.addRequestHeaders ?? {},
    allowedResponseHeaders: lowerNames(http.allowedResponseHeaders),
    ...(responseMetadata && { responseMetadata }),
  }
}

function grpcConfig({ contextExtensions = {}, requestMetadata }: GrpcSpec): GrpcAuthorization {
  return { contextExtensions, ...(requestMetadata && { requestMetadata }) }
}
