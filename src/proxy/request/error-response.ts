/** The only place that turns errors and verdicts into responses of requests that have a route. */
import { CoreTrap } from '../../core/errors.ts'
import { type ErrorCode, GatewayError } from '../../errors/index.ts'
import type { HeaderFields, RespondVerdict } from '../../exchange/exchange.ts'
import { isGrpc } from '../../exchange/grpc.ts'

/** A response that the gateway makes itself. */
export interface LocalResponse {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string | Uint8Array | undefined
}

/** What is thrown and is no GatewayError is a bug; its text stays inside. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  if (thrown instanceof CoreTrap) return new GatewayError('core_trapped', undefined, thrown)
  return new GatewayError('bug', undefined, thrown)
}

/** Writes a JSON error in the format that the client of a backend understands. */
export type ErrorWriter = (status: number, message: string) => string

interface ErrorFormat {
  /** If omitted, errors are plain text. */
  readonly write?: ErrorWriter | undefined
  /** A GRPCRoute was chosen. */
  readonly isGrpcRoute?: boolean
}

/**
 * The answer to a request that met an error: the catalogue's status and text, never the detail,
 * which may name internals. gRPC clients cannot read HTTP statuses and get 200 with a grpc-status.
 */
export function errorResponse(
  error: GatewayError,
  requestHeaders: HeaderFields,
  { write, isGrpcRoute = false }: ErrorFormat = {},
): LocalResponse {
  const { status, text } = error.row
  if (write !== undefined) return { status, headers: [json], body: write(status, text) }
  if (isGrpc(requestHeaders.get('content-type'))) {
    return grpcResponse(grpcStatus(error.code, status, isGrpcRoute), text, [])
  }
  return { status, headers: [plainText], body: text }
}

/** The answer of a policy or of a backend; a refusal in the way that the client understands. */
export function verdictResponse(
  verdict: RespondVerdict,
  requestHeaders: HeaderFields,
  write?: ErrorWriter,
): LocalResponse {
  const { status, headers = [], body, refusal } = verdict
  if (refusal !== true) return { status, headers, body }
  const text = refusalText(verdict)
  if (write !== undefined) return { status, headers: [json, ...headers], body: write(status, text) }
  if (isGrpc(requestHeaders.get('content-type'))) {
    return grpcResponse(grpcByStatus[status] ?? 2, text, headers)
  }
  return { status, headers: [plainText, ...headers], body }
}

/** What a refusal says; empty where its body is no text. */
export function refusalText({ body }: RespondVerdict): string {
  return typeof body === 'string' ? body : ''
}

const plainText = ['content-type', 'text/plain'] as const
const json = ['content-type', 'application/json'] as const

function grpcResponse(status: number, text: string, headers: LocalResponse['headers']) {
  return {
    status: 200,
    headers: [
      ['content-type', 'application/grpc'] as const,
      ['grpc-status', `${status}`] as const,
      ['grpc-message', encodeURIComponent(text).replaceAll('%20', ' ')] as const,
      ...headers,
    ],
    body: undefined,
  }
}

const grpcByStatus: Readonly<Record<number, number>> = {
  400: 13,
  401: 16,
  403: 7,
  404: 12,
  407: 16,
  429: 14,
  502: 14,
  503: 14,
  504: 14,
}

/** What is wrong with the references of a rule. */
const brokenReferences: readonly ErrorCode[] = [
  'backend_invalid',
  'backend_unsupported',
  'rule_unusable',
  'service_not_found',
]

/**
 * gRPC's mapping of HTTP statuses; a rule without backends is unavailable, not unknown, and where a
 * GRPCRoute leads nowhere, so is that (Gateway API, GRPCRouteRule.backendRefs).
 */
function grpcStatus(code: ErrorCode, status: number, isGrpcRoute: boolean): number {
  if (code === 'no_backends' || (isGrpcRoute && brokenReferences.includes(code))) return 14
  return grpcByStatus[status] ?? 2
}
