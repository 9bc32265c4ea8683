import type { CalloutTarget } from '../../exchange/exchange.ts'

/** By name: the expression that makes the value. */
export type Expressions = Readonly<Record<string, string>>

export interface HttpAuthorization {
  readonly path?: string
  readonly redirect?: string
  /** Lower case. */
  readonly allowedRequestHeaders: readonly string[]
  readonly addRequestHeaders: Expressions
  /** Lower case. */
  readonly allowedResponseHeaders: readonly string[]
  readonly responseMetadata?: Expressions
}

export interface GrpcAuthorization {
  readonly contextExtensions: Readonly<Record<string, string>>
  /** Absent: the claims of a verified token are sent. */
  readonly requestMetadata?: Expressions
}

/** Version 1. Exactly one of `http` and `grpc`. */
export interface ExtAuthConfig {
  readonly target: CalloutTarget
  /** Largest body that is sent; absent: none is. */
  readonly maxBodyBytes?: number
  readonly http?: HttpAuthorization
  readonly grpc?: GrpcAuthorization
}
