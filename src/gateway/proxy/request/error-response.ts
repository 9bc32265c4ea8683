/** Makes responses from errors and verdicts. Responses to requests with a route are made only here. */

import { CoreTrap } from '../../../engines/core/errors.ts'
import type { WholeBody } from '../../../ground/base/buffers.ts'
import { type ErrorCode, GatewayError } from '../../../ground/errors/index.ts'
import type { ProxyError } from '../../../ground/errors/row.ts'
import type { HeaderFields, RespondVerdict, SpentLimit } from '../../../ground/exchange/exchange.ts'
import { isGrpc } from '../../../ground/exchange/grpc.ts'

/** A response of the gateway itself. */
export interface LocalResponse {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: WholeBody | undefined
}

/** Converts any thrown value. Values other than a GatewayError are bugs, whose text clients never get. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  if (thrown instanceof CoreTrap) return new GatewayError('core_trapped', undefined, thrown)
  return new GatewayError('bug', undefined, thrown)
}

/** Writes a JSON error in the format of a backend's clients. `limit` is set if a rate limit refused. */
export type ErrorWriter = (status: number, message: string, limit?: SpentLimit) => string

interface ErrorFormat {
  /** If omitted, errors are plain text. */
  readonly write?: ErrorWriter | undefined
  /** Whether a GRPCRoute was chosen. */
  readonly isGrpcRoute?: boolean
}

/**
 * Makes the response to an error. It has the status and text from the error catalogue, but never the detail,
 * which may name internals. gRPC clients get status 200 with a grpc-status.
 */
export function errorResponse(
  error: GatewayError,
  requestHeaders: HeaderFields,
  { write, isGrpcRoute = false }: ErrorFormat = {},
): LocalResponse {
  const { status, text, proxyError } = error.row
  const cause = proxyStatus(proxyError)
  if (write !== undefined) return { status, headers: [json, cause], body: write(status, text) }
  if (isGrpc(requestHeaders.get('content-type'))) {
    return grpcResponse(grpcStatus(error.code, status, isGrpcRoute), text, [cause])
  }
  return { status, headers: [plainText, cause], body: text }
}

/** Makes the response of a policy or a backend. Refusals are written in the client's format. */
export function verdictResponse(
  verdict: RespondVerdict,
  requestHeaders: HeaderFields,
  write?: ErrorWriter,
): LocalResponse {
  const { status, headers: own = [], body, refusal, limit } = verdict
  if (refusal !== true) return { status, headers: own, body }
  const headers = [...own, denied]
  const text = refusalText(verdict)
  if (write !== undefined)
    return { status, headers: [json, ...headers], body: write(status, text, limit) }
  if (isGrpc(requestHeaders.get('content-type'))) {
    return grpcResponse(grpcByStatus[status] ?? 2, text, headers)
  }
  return { status, headers: [plainText, ...headers], body }
}

/** Returns the text of a refusal; empty if the body is not text. */
export function refusalText({ body }: RespondVerdict): string {
  return typeof body === 'string' ? body : ''
}

/** A field that marks the response as made by this gateway, with the reason (RFC 9209). */
const proxyStatus = (error: ProxyError) => ['proxy-status', `sluice; error=${error}`] as const

const denied = proxyStatus('http_request_denied')
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

/** Codes of errors about the references of a rule. */
const brokenReferences: readonly ErrorCode[] = [
  'backend_invalid',
  'backend_unsupported',
  'rule_unusable',
  'service_not_found',
]

/**
 * Maps an error to a gRPC status, as gRPC maps HTTP statuses. A rule without backends gives UNAVAILABLE. So
 * does a GRPCRoute whose references are broken (Gateway API, GRPCRouteRule.backendRefs).
 */
function grpcStatus(code: ErrorCode, status: number, isGrpcRoute: boolean): number {
  if (code === 'no_backends' || (isGrpcRoute && brokenReferences.includes(code))) return 14
  return grpcByStatus[status] ?? 2
}
