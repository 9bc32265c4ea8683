/** The only place that turns a GatewayError into a response. */
import { CoreTrap } from '../core/errors.ts'
import { type ErrorCode, GatewayError } from '../errors/index.ts'
import type { HeaderFields, RespondVerdict } from '../exchange/exchange.ts'
import { isGrpc } from '../exchange/grpc.ts'

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

/**
 * The answer to a request that met an error: the catalogue's status and text, never the detail,
 * which may name internals. gRPC clients cannot read HTTP statuses and get 200 with a grpc-status.
 * `isGrpcRoute`: a GRPCRoute was chosen.
 */
export function rescue(
  error: GatewayError,
  requestHeaders: HeaderFields,
  isGrpcRoute = false,
): LocalResponse {
  const { status, text } = error.row
  if (isGrpc(requestHeaders.get('content-type'))) {
    return grpcResponse(grpcStatus(error.code, status, isGrpcRoute), text, [])
  }
  return { status, headers: [plainText], body: text }
}

/** The answer of a policy; where that is a refusal, in the way that the client understands. */
export function answerOf(verdict: RespondVerdict, requestHeaders: HeaderFields): LocalResponse {
  const { status, headers = [], body, refusal } = verdict
  if (refusal !== true) return { status, headers, body }
  if (isGrpc(requestHeaders.get('content-type'))) {
    return grpcResponse(grpcByStatus[status] ?? 2, refusalText(verdict), headers)
  }
  return { status, headers: [plainText, ...headers], body }
}

/** What a refusal says; empty where its body is no text. */
export function refusalText({ body }: RespondVerdict): string {
  return typeof body === 'string' ? body : ''
}

const plainText = ['content-type', 'text/plain'] as const

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
