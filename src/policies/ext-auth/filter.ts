/**
 * The ExternalAuth filter of an HTTPRoute rule (Gateway API, HTTPExternalAuthFilter), as the policy
 * that it is: its settings are the Gateway API's, whose defaults differ from those of the policy.
 */
import type { References } from '../../model/references.ts'
import type { BackendObjectReference } from '../../schema/shapes/references.ts'
import type { Compiled, PolicyProblem } from '../define.ts'
import type { ExtAuthConfig, HttpAuthorization } from './config.ts'
import { lowerNames, nameProblems } from './names.ts'

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

/** A service that cannot be reached, or a setting that cannot be honoured, closes the rule. */
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
  const target = references.backend(backendRef)
  if (typeof target === 'string' || target.type === 'invalid') {
    const message = typeof target === 'string' ? target : target.message
    return { problems: [{ path: 'backendRef', message }, ...problems] }
  }
  if (problems.length > 0) return { problems }
  const { maxSize = 0 } = forwardBody ?? {}
  const settings = protocol === 'HTTP' ? { http: httpConfig(http) } : { grpc: grpcConfig(grpc) }
  return {
    config: { target, ...(maxSize > 0 && { maxBodyBytes: maxSize }), ...settings },
    problems,
  }
}

/** The length that is sent is always that of what is sent, whether the filter names it or not. */
function withoutLength(names: readonly string[] | undefined): readonly string[] | undefined {
  return names?.filter((name) => name.toLowerCase() !== 'content-length')
}

/** A prefix that leads elsewhere than below itself would ask for something that nobody named. */
function pathProblems(path = ''): PolicyProblem[] {
  const segments = path.replaceAll(/%2e/gi, '.').split('/')
  const isFine = !segments.includes('..') && !segments.includes('.')
  return isFine ? [] : [{ path: 'http.path', message: `${path} has a segment of dots` }]
}

function httpConfig({
  path,
  allowedHeaders,
  allowedResponseHeaders = [],
}: NonNullable<ExternalAuthFilter['http']>): HttpAuthorization {
  const prefix = path === undefined ? '' : `/${path.replaceAll(/^\/+|\/+$/g, '')}`
  return {
    ...(prefix.length > 1 && { pathPrefix: prefix }),
    // Host, Authorization and what frames the request are sent whatever the filter names.
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
