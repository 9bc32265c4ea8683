/** Failures of targets, and error responses to MCP clients. */
import { GatewayError } from '../../../errors/index.ts'
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { codes, errorText } from '../answers.ts'

export const json = ['content-type', 'application/json'] as const

const jsonAlone = [json]

/** A response with one JSON-RPC message. */
export function jsonAnswer(
  body: string | Uint8Array,
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

/** An error response of a server. */
export interface RefusedAnswer {
  readonly status: number
  /** The headers that are passed to clients. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

/** Why a target gave no response to a message. */
export class TargetFailure extends Error {
  override readonly name = 'TargetFailure'
  /** The error response, if there was one. */
  readonly answer: RefusedAnswer | undefined
  /** Has the stream ended in a way that the client may resume it? */
  readonly isResumable: boolean

  constructor(
    message: string,
    { answer, isResumable = false }: { answer?: RefusedAnswer; isResumable?: boolean } = {},
    cause?: unknown,
  ) {
    super(message, { cause })
    this.answer = answer
    this.isResumable = isResumable
  }

  /**
   * Has the server lost the session? It responds with 404 (streamable HTTP, session management);
   * many servers send 400 with a text about sessions, as early examples of the SDKs did.
   */
  get isSessionLost(): boolean {
    if (this.answer === undefined) return false
    const { status, body } = this.answer
    if (status === 404) return true
    return status === 400 && /session/i.test(Buffer.from(body).toString('latin1'))
  }

  /** The status of the response to the client. */
  get status(): number {
    return this.cause instanceof GatewayError ? this.cause.row.status : 502
  }
}

export function toFailure(thrown: unknown): TargetFailure {
  if (thrown instanceof TargetFailure) return thrown
  if (!(thrown instanceof GatewayError)) throw thrown
  return new TargetFailure(thrown.row.text, {}, thrown)
}

/** Returns the error response of the server or, if there was none, a response that reports the failure. */
export function verdictOf(failure: TargetFailure, id: string | undefined): RespondVerdict {
  const { answer, cause } = failure
  if (answer !== undefined) {
    const { status, headers, body } = answer
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
