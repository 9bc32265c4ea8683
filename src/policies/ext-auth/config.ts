import type { CalloutTarget } from '../../exchange/exchange.ts'

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
