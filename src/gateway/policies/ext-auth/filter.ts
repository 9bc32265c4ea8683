import { calledBackend, type References } from '../../../ground/model/references.ts'
import type { BackendObjectReference } from '../../../ground/schema/shapes/references.ts'
import type { Compiled, PolicyProblem } from '../define.ts'
import type { ExtAuthConfig, HttpAuthorization } from './config.ts'
import { lowerNames, nameProblems } from './names.ts'

/** The ExternalAuth filter of an HTTPRoute rule (Gateway API, HTTPExternalAuthFilter). */
export interface ExternalAuthFilter {
  readonly protocol: 'HTTP' | 'GRPC'
  readonly backendRef: BackendObjectReference
  readonly grpc?: { readonly allowedHeaders?: readonly string[] }
  readonly http?: {
    readonly path?: string
    readonly allowedHeaders?: readonly string[]
    readonly allowedResponseHeaders?: readonly string[]
  }
  readonly forwardBody?: { readonly maxSize?: number }
}

/**
 * Compiles the filter to a config of the policy extAuth, whose defaults differ. If the service cannot be
 * reached or a setting is not supported, all requests of the rule are rejected.
 */
export function compileFilter(
  { protocol, backendRef, grpc = {}, http = {}, forwardBody }: ExternalAuthFilter,
  references: References,
): Compiled<ExtAuthConfig> {
  const problems: PolicyProblem[] = [
    ...nameProblems('grpc.allowedHeaders', grpc.allowedHeaders),
    ...nameProblems('http.allowedHeaders', withoutLength(http.allowedHeaders)),
    ...nameProblems('http.allowedResponseHeaders', http.allowedResponseHeaders),
    ...pathProblems(http.path),
  ]
  const target = calledBackend(references, backendRef)
  if (typeof target === 'string') {
    return { problems: [{ path: 'backendRef', message: target }, ...problems] }
  }
  if (problems.length > 0) return { problems }
  const { maxSize = 0 } = forwardBody ?? {}
  const settings = protocol === 'HTTP' ? { http: httpConfig(http) } : { grpc: grpcConfig(grpc) }
  return {
    config: { target, ...(maxSize > 0 && { maxBodyBytes: maxSize }), ...settings },
    problems,
  }
}

/** Removes Content-Length, which is always computed for the request to the service. */
function withoutLength(names: readonly string[] | undefined): readonly string[] | undefined {
  return names?.filter((name) => name.toLowerCase() !== 'content-length')
}

/** Rejects `.` and `..` segments, with which the path could leave the prefix. */
function pathProblems(path = ''): PolicyProblem[] {
  const segments = path.replaceAll(/%2e/gi, '.').split('/')
  const isSafe = !segments.includes('..') && !segments.includes('.')
  return isSafe ? [] : [{ path: 'http.path', message: `${path} has a segment of dots` }]
}

function httpConfig({
  path,
  allowedHeaders,
  allowedResponseHeaders = [],
}: NonNullable<ExternalAuthFilter['http']>): HttpAuthorization {
  const prefix = path === undefined ? '' : `/${path.replaceAll(/^\/+|\/+$/g, '')}`
  return {
    ...(prefix.length > 1 && { pathPrefix: prefix }),
    // Host, Authorization and the fields that frame the request are always sent.
    allowedRequestHeaders: lowerNames(['host', ...(withoutLength(allowedHeaders) ?? [])]),
    addRequestHeaders: {},
    allowedResponseHeaders:
      allowedResponseHeaders.length === 0 ? 'all' : lowerNames(allowedResponseHeaders),
  }
}

function grpcConfig({ allowedHeaders = [] }: NonNullable<ExternalAuthFilter['grpc']>) {
  return {
    contextExtensions: {},
    ...(allowedHeaders.length > 0 && { allowedRequestHeaders: lowerNames(allowedHeaders) }),
  }
}
