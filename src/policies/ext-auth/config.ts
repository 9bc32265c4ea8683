import {
  choice,
  count,
  either,
  list,
  map,
  optional,
  record,
  type Shape,
  text,
  where,
} from '../../base/shape.ts'
import type { CalloutTarget } from '../../exchange/exchange.ts'
import { calloutTarget } from '../../model/shapes.ts'

/** By name: the expression that makes the value. */
export type Expressions = Readonly<Record<string, string>>

export interface HttpAuthorization {
  readonly path?: string
  /** Put before the path of the request, query included; where `path` is absent. */
  readonly pathPrefix?: string
  readonly redirect?: string
  /** Lower case. */
  readonly allowedRequestHeaders: readonly string[]
  readonly addRequestHeaders: Expressions
  /** Lower case; `all`: every one that is not about the answer itself or the way it came. */
  readonly allowedResponseHeaders: readonly string[] | 'all'
  readonly responseMetadata?: Expressions
}

export interface GrpcAuthorization {
  readonly contextExtensions: Readonly<Record<string, string>>
  /** Absent: the claims of a verified token are sent. */
  readonly requestMetadata?: Expressions
  /** Lower case; absent: all headers are sent. */
  readonly allowedRequestHeaders?: readonly string[]
}

/** Version 1. Exactly one of `http` and `grpc`. */
export interface ExtAuthConfig {
  readonly target: CalloutTarget
  /** Largest body that is sent; absent: none is. */
  readonly maxBodyBytes?: number
  readonly http?: HttpAuthorization
  readonly grpc?: GrpcAuthorization
}

const http: Shape<HttpAuthorization> = record({
  path: optional(text),
  pathPrefix: optional(text),
  redirect: optional(text),
  allowedRequestHeaders: list(text),
  addRequestHeaders: map(text),
  allowedResponseHeaders: either(list(text), choice('all')),
  responseMetadata: optional(map(text)),
})

const grpc: Shape<GrpcAuthorization> = record({
  contextExtensions: map(text),
  requestMetadata: optional(map(text)),
  allowedRequestHeaders: optional(list(text)),
})

export const shape: Shape<ExtAuthConfig> = where(
  record<ExtAuthConfig>({
    target: calloutTarget,
    maxBodyBytes: optional(count),
    http: optional(http),
    grpc: optional(grpc),
  }),
  'exactly one of http and grpc',
  (config) => (config.http === undefined) !== (config.grpc === undefined),
)
