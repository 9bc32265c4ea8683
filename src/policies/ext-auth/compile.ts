import { isFieldName } from '../../model/header-changes.ts'
import type { References } from '../../model/references.ts'
import type { Compiled, PolicyProblem } from '../define.ts'
import type { ExtAuthConfig, GrpcAuthorization, HttpAuthorization } from './config.ts'
import type { ExtAuthSpec } from './schema.ts'

type HttpSpec = NonNullable<ExtAuthSpec['http']>
type GrpcSpec = NonNullable<ExtAuthSpec['grpc']>

/** A service that cannot be reached closes what the policy covers. */
export function compile(
  { backendRef, http, grpc, forwardBody }: ExtAuthSpec,
  references: References,
): Compiled<ExtAuthConfig> {
  const problems = http === undefined ? [] : nameProblems(http)
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

/** What frames a message is written by whoever sends it. */
const framing = new Set(['connection', 'content-length', 'transfer-encoding', 'upgrade', 'expect'])

function nameProblems(http: HttpSpec): PolicyProblem[] {
  const problems: PolicyProblem[] = []
  const check = (path: string, name: string) => {
    if (!isFieldName(name)) problems.push({ path, message: 'is not an HTTP field name' })
    else if (framing.has(name.toLowerCase())) {
      problems.push({ path, message: `${name} is not passed on: it belongs to one connection` })
    }
  }
  const { allowedRequestHeaders = [], allowedResponseHeaders = [], addRequestHeaders = {} } = http
  for (const [at, name] of allowedRequestHeaders.entries()) {
    check(`http.allowedRequestHeaders[${at}]`, name)
  }
  for (const [at, name] of allowedResponseHeaders.entries()) {
    check(`http.allowedResponseHeaders[${at}]`, name)
  }
  for (const name of Object.keys(addRequestHeaders)) check(`http.addRequestHeaders.${name}`, name)
  return problems
}

const lower = (names: readonly string[] = []): string[] => [
  ...new Set(names.map((name) => name.toLowerCase())),
]

function httpConfig({ path, redirect, responseMetadata, ...http }: HttpSpec): HttpAuthorization {
  return {
    ...(path !== undefined && { path }),
    ...(redirect !== undefined && { redirect }),
    allowedRequestHeaders: lower(http.allowedRequestHeaders),
    addRequestHeaders: http.addRequestHeaders ?? {},
    allowedResponseHeaders: lower(http.allowedResponseHeaders),
    ...(responseMetadata && { responseMetadata }),
  }
}

function grpcConfig({ contextExtensions = {}, requestMetadata }: GrpcSpec): GrpcAuthorization {
  return { contextExtensions, ...(requestMetadata && { requestMetadata }) }
}
