/** Failures of targets. */
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { legacyVersions } from '../../eras/versions.ts'
import { codes, errorText } from '../../json-rpc.ts'

export const json = ['content-type', 'application/json'] as const

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

/** Returns members of the JSON-RPC error in a body; undefined if there is none. */
function errorIn(text: string) {
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
  /** Whether the stream has ended in a way that the client may resume it. */
  readonly isResumable: boolean
  /** Whether the server has not responded within a limit of the gateway. */
  readonly hasTimedOut: boolean
  /** Whether the server has refused only this message. The session exists. */
  readonly isInSession: boolean
  /** Set if the user must allow something on a page first. */
  readonly consent: RespondVerdict['consent']

  constructor(
    message: string,
    details: Partial<
      Pick<
        TargetFailure,
        'httpResponse' | 'isResumable' | 'hasTimedOut' | 'isInSession' | 'consent'
      >
    > = {},
    cause?: unknown,
  ) {
    super(message, { cause })
    const isTimeout = cause instanceof GatewayError && timeoutCodes.includes(cause.code)
    this.httpResponse = details.httpResponse
    this.isResumable = details.isResumable ?? false
    this.hasTimedOut = details.hasTimedOut ?? isTimeout
    this.isInSession = details.isInSession ?? false
    this.consent = details.consent
  }

  /**
   * Whether the server may have lost the session. It responds with 404 then (streamable HTTP, session management), but
   * many servers send 404 for other reasons as well, or 400 with one of the texts that SDKs use. Therefore the
   * gateway asks with `ping` before it takes the session for lost.
   */
  get mayHaveLostSession(): boolean {
    if (this.httpResponse === undefined) return false
    const { status } = this.httpResponse
    return isGoneStatus(status) || (status === 400 && this.namesUnknownSession)
  }

  /**
   * Whether the body says that the session does not exist. An error 400 with the id of the request is the response to
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
    super('the server keeps sessions, which the version of the request does not have', {
      httpResponse: jsonError(400, errorText(id, codes.unsupportedVersion, message, data)),
    })
  }
}

export function toFailure(thrown: unknown): TargetFailure {
  if (thrown instanceof TargetFailure) return thrown
  if (!(thrown instanceof GatewayError)) throw thrown
  return new TargetFailure(thrown.row.text, {}, thrown)
}

/** Returns the failure of a request to which the server has sent no response. */
export const endedEarly = (isResumable = false): TargetFailure =>
  new TargetFailure('the server ended without a response', { isResumable })

const jsonError = (status: number, text: string): HttpErrorResponse => ({
  status,
  headers: [json],
  body: Buffer.from(text),
})

/** Returns a failure whose error response has this JSON. */
export const refusedWith = (why: string, status: number, text: string): TargetFailure =>
  new TargetFailure(why, { httpResponse: jsonError(status, text) })
