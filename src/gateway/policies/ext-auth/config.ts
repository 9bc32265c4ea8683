import {
  choice,
  count,
  either,
  flag,
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
  /** Names of headers of a refusal that clients get. If omitted, they get all. */
  allowedClientHeaders: optional(list(text)),
  /** Names of headers of the service's answer that are added to the response of an allowed request. */
  allowedClientHeadersOnSuccess: optional(list(text)),
  /** Expression for the body of the check request. If omitted, the body of the request is sent as configured. */
  body: optional(text),
  responseMetadata: optional(expressions),
})
export type HttpAuthorization = Infer<typeof http>

const grpc = record({
  contextExtensions: map(text),
  /** Metadata to send. If omitted, the claims of a verified token are sent. */
  requestMetadata: optional(expressions),
  /** Lower-case names of the headers to send. If omitted, all are sent. */
  allowedRequestHeaders: optional(list(text)),
  /** Whether bodies are sent as bytes even if they are UTF-8. */
  packAsBytes: optional(flag),
})
export type GrpcAuthorization = Infer<typeof grpc>

const cache = record({
  /** Expressions whose values are the key. */
  key: list(text),
  /** A duration, or an expression that gives a duration or a timestamp. */
  ttl: text,
  maxEntries: count,
})
export type CacheConfig = Infer<typeof cache>

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
export const shape = where(
  record({
    target: calloutTarget,
    /** Maximum size of the body to send. If omitted, no body is sent. */
    maxBodyBytes: optional(count),
    /** Whether the first `maxBodyBytes` of a larger body are sent. Otherwise, a request with such a body is refused. */
    allowsPartialBody: optional(flag),
    /** Whether requests pass if the service fails. */
    failsOpen: optional(flag),
    cache: optional(cache),
    http: optional(http),
    grpc: optional(grpc),
  }),
  'exactly one of http and grpc',
  (config) => (config.http === undefined) !== (config.grpc === undefined),
)
export type ExtAuthConfig = Infer<typeof shape>
