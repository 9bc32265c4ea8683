/** Failures of targets, and error responses to MCP clients. */
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { legacyVersions } from '../../eras/versions.ts'
import { codes, errorText } from '../../responses.ts'

export const json = ['content-type', 'application/json'] as const

const jsonAlone = [json]

/** A response with one JSON-RPC message. */
export function jsonResponse(
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
export interface HttpErrorResponse {
  readonly status: number
  /** The headers that are passed to clients. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

/** 404, and 410, which some servers send for sessions that have expired. */
export const isGoneStatus = (status: number): boolean => status === 404 || status === 410

/** Code with which the SDKs report that a session does not exist. */
const unknownSessionCode = -32001

/** What the SDKs and widespread servers write if a session does not exist. */
const unknownSession =
  /^\W*(?:bad request:? *|not found:? *)*(?:(?:no valid|missing|invalid|unknown) (?:mcp[- ])?session(?:[- ]?id)?\b|session (?:id )?(?:was |is )?(?:not found|required|missing|invalid|expired|terminated|unknown)|(?:mcp-)?session-id header (?:is )?(?:required|missing)|server not initialized)/i

interface ErrorMembers {
  readonly id?: unknown
  readonly code?: unknown
  readonly message?: string | undefined
}

/** Returns members of the JSON-RPC error in a body; undefined if there is none. */
function errorIn(text: string): ErrorMembers | undefined {
  if (!text.trimStart().startsWith('{')) return undefined
  try {
    const { id, error, detail } = JSON.parse(text) as {
      id?: unknown
      error?: { code?: unknown; message?: unknown } | string | null
      detail?: unknown
    }
    const { code, message } = typeof error === 'object' ? (error ?? {}) : { message: error }
    const texts = [message, detail].filter((one) => typeof one === 'string')
    return { id, code, message: texts[0] }
  } catch {
    return undefined
  }
}

/** Codes of the failures that are timeouts. */
const timeoutCodes: readonly string[] = ['upstream_timeout', 'route_timeout']

/** Why a target gave no response to a message. */
export class TargetFailure extends Error {
  override readonly name = 'TargetFailure'
  /** The error response, if there was one. */
  readonly httpResponse: HttpErrorResponse | undefined
  /** Has the stream ended in a way that the client may resume it? */
  readonly isResumable: boolean
  /** Did the server not respond within a limit of the gateway? */
  readonly hasTimedOut: boolean
  /** Has the server refused only this message? The session exists. */
  readonly isInSession: boolean

  constructor(
    message: string,
    {
      httpResponse,
      isResumable = false,
      hasTimedOut = false,
      isInSession = false,
    }: {
      httpResponse?: HttpErrorResponse | undefined
      isResumable?: boolean
      hasTimedOut?: boolean
      isInSession?: boolean
    } = {},
    cause?: unknown,
  ) {
    super(message, { cause })
    this.httpResponse = httpResponse
    this.isResumable = isResumable
    this.hasTimedOut =
      hasTimedOut || (cause instanceof GatewayError && timeoutCodes.includes(cause.code))
    this.isInSession = isInSession
  }

  /**
   * Could the server have lost the session? It responds with 404 then (streamable HTTP, session management), but
   * many servers send 404 for other reasons as well, or 400 with one of the texts that SDKs use. Therefore the
   * gateway asks with `ping` before it takes the session for lost.
   */
  get mayHaveLostSession(): boolean {
    if (this.httpResponse === undefined) return false
    const { status } = this.httpResponse
    return isGoneStatus(status) || (status === 400 && this.namesUnknownSession)
  }

  /**
   * Does the body say that the session does not exist? An error 400 with the id of the request is the response to
   * it, such as a tool's own error about sessions.
   */
  get namesUnknownSession(): boolean {
    if (this.httpResponse === undefined) return false
    const { status, body } = this.httpResponse
    const text = Buffer.from(body).toString('latin1')
    const { id, code, message } = errorIn(text) ?? {}
    const isOfRequest = status === 400 && id !== undefined && id !== null && id !== 'server-error'
    if (isOfRequest) return false
    return code === unknownSessionCode || unknownSession.test(message ?? text)
  }

  /** The status of the response to the client. */
  get status(): number {
    return this.cause instanceof GatewayError ? this.cause.row.status : 502
  }
}

/** The response to a modern request for a server that gives each client a session. */
export class SessionNeeded extends TargetFailure {
  /** `id` is the id of the request as JSON. */
  constructor(target: string, id: string, requested: string) {
    const message = `Unsupported protocol version: server ${target} keeps a session for each client, which ${requested} does not have. Begin a session with initialize.`
    const data = { supported: [...legacyVersions].reverse(), requested }
    const body = Buffer.from(errorText(id, codes.unsupportedVersion, message, data))
    const httpResponse = { status: 400, headers: [json], body }
    super('the server keeps sessions, which the version of the request does not have', {
      httpResponse,
    })
  }
}

export function toFailure(thrown: unknown): TargetFailure {
  if (thrown instanceof TargetFailure) return thrown
  if (!(thrown instanceof GatewayError)) throw thrown
  return new TargetFailure(thrown.row.text, {}, thrown)
}

/** Returns the error response of the server or, if there was none, a response that reports the failure. */
export function verdictOf(failure: TargetFailure, id: string | undefined): RespondVerdict {
  const { httpResponse, cause } = failure
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
