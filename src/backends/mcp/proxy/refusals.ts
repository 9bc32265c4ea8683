/** Answers that tell a client why it gets none. */

import { GatewayError } from '../../../errors/index.ts'
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { codes, errorText } from '../answers.ts'
import type { TargetFailure } from './failure.ts'

export const json = ['content-type', 'application/json'] as const

/** `id`: JSON of the id of the request that is answered; undefined where it is not known. */
export function jsonRefusal(
  status: number,
  id: string | undefined,
  code: number,
  message: string,
  { reason = 'InvalidRequest', data }: { reason?: string; data?: unknown } = {},
): RespondVerdict {
  const body = errorText(id, code, message, data)
  return { kind: 'respond', status, headers: [json], body, reason }
}

/** What a server refused with is the client's to read; else it learns that there was no answer. */
export function verdictOf(failure: TargetFailure, id: string | undefined): RespondVerdict {
  const { answer, cause } = failure
  if (answer !== undefined) {
    const { status, headers, body } = answer
    return { kind: 'respond', status, headers, body, reason: 'Upstream' }
  }
  const reason = cause instanceof GatewayError ? cause.row.reason : 'UpstreamFailure'
  return jsonRefusal(failure.status, id, codes.internal, failure.message, { reason })
}

/** The client has to begin another session (streamable HTTP, session management). */
export const lostSession = (): RespondVerdict =>
  jsonRefusal(404, undefined, -32001, 'Session not found', { reason: 'NotFound' })
