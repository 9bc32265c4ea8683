import {
  choice,
  count,
  either,
  type Infer,
  list,
  map,
  optional,
  record,
  text,
  where,
} from '../../../ground/base/shape.ts'
import { calloutTarget } from '../../../ground/model/shapes.ts'

/** Expressions by the name of the header or metadata entry whose value they compute. */
const expressions = map(text)
export type Expressions = Infer<typeof expressions>

/** Settings of the HTTP protocol. Header names are in lower case. */
const http = record({
  path: optional(text),
  /** Prefix for the path and query of the request; used if `path` is omitted. */
  pathPrefix: optional(text),
  redirect: optional(text),
  allowedRequestHeaders: list(text),
  addRequestHeaders: expressions,
  /** Digests of literals of `addRequestHeaders` that are secrets; omitted if there are none. */
  digests: optional(list(text)),
  /** `all` means all headers except those about the content or the connection of the service's response. */
  allowedResponseHeaders: either(list(text), choice('all')),
  responseMetadata: optional(expressions),
})
export type HttpAuthorization = Infer<typeof http>

const grpc = record({
  contextExtensions: map(text),
  /** Metadata to send. If omitted, the claims of a verified token are sent. */
  requestMetadata: optional(expressions),
  /** Lower-case names of the headers to send. If omitted, all are sent. */
  allowedRequestHeaders: optional(list(text)),
})
export type GrpcAuthorization = Infer<typeof grpc>

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
export const shape = where(
  record({
    target: calloutTarget,
    /** Maximum size of the body to send. If omitted, no body is sent. */
    maxBodyBytes: optional(count),
    http: optional(http),
    grpc: optional(grpc),
  }),
  'exactly one of http and grpc',
  (config) => (config.http === undefined) !== (config.grpc === undefined),
)
export type ExtAuthConfig = Infer<typeof shape>
