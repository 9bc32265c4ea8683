/** Error responses to MCP clients. */
import type { WholeBody } from '../../../../../ground/base/buffers.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { codes, errorText } from '../../json-rpc.ts'
import { json, type TargetFailure } from '../target/target-failure.ts'
import { consentError } from './consent.ts'

const jsonAlone = [json]

/** A response with one JSON-RPC message. */
export function jsonResponse(
  body: WholeBody,
  headers: readonly (readonly [string, string])[] = [],
  status = 200,
): RespondVerdict {
  const all = headers.length === 0 ? jsonAlone : [json, ...headers]
  return { kind: 'respond', status, headers: all, body, reason: 'Upstream' }
}

/**
 * Makes an error response. `id` is the id of the refused request as JSON, if it is known. `detail` is recorded;
 * set it if the message contains a part of the request.
 */
export function jsonRefusal(
  status: number,
  id: string | undefined,
  code: number,
  message: string,
  {
    reason = 'InvalidRequest',
    data,
    detail = message,
  }: { reason?: string; data?: unknown; detail?: string } = {},
): RespondVerdict {
  const body = errorText(id, code, message, data)
  return { kind: 'respond', status, headers: [json], body, reason, detail }
}

/** Returns the error response of the server or, if there was none, a response that reports the failure. */
export function verdictOf(failure: TargetFailure, id: string | undefined): RespondVerdict {
  const { httpResponse, cause, consent } = failure
  if (consent !== undefined && id !== undefined) {
    return { ...jsonResponse(consentError(id, consent)), detail: failure.message }
  }
  if (httpResponse !== undefined) {
    const { status, headers, body } = httpResponse
    return { kind: 'respond', status, headers, body, reason: 'Upstream', detail: failure.message }
  }
  const reason = cause instanceof GatewayError ? cause.row.reason : 'UpstreamFailure'
  const detail = cause instanceof GatewayError ? cause.message : failure.message
  return jsonRefusal(failure.status, id, codes.internal, failure.message, { reason, detail })
}

/** Detail of a request with a session of another client. */
export const otherClient = 'the session belongs to another client'

/** Makes the response that tells a client to begin another session (streamable HTTP, session management). */
export const lostSession = (detail = 'the session is not known'): RespondVerdict =>
  jsonRefusal(404, undefined, -32001, 'Session not found', { reason: 'NotFound', detail })
