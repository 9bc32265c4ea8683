import { GatewayError } from '../../../errors/index.ts'

/** A server has answered with a status that says it did not serve. */
export interface RefusedAnswer {
  readonly status: number
  /** Those that clients can use. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

/** Why a target gave no answer to a message. */
export class TargetFailure extends Error {
  override readonly name = 'TargetFailure'
  /** Set where there was an answer. */
  readonly answer: RefusedAnswer | undefined
  /** The stream has ended, and the client may take it up again where it was. */
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
   * The server knows the session no more: 404 (streamable HTTP, session management); many servers
   * say 400, as the examples of the SDKs once did, and a text about sessions.
   */
  get isSessionLost(): boolean {
    if (this.answer === undefined) return false
    const { status, body } = this.answer
    if (status === 404) return true
    return status === 400 && /session/i.test(Buffer.from(body).toString('latin1'))
  }

  /** The status of an answer that tells of it. */
  get status(): number {
    return this.cause instanceof GatewayError ? this.cause.row.status : 502
  }
}

export function toFailure(thrown: unknown): TargetFailure {
  if (thrown instanceof TargetFailure) return thrown
  if (!(thrown instanceof GatewayError)) throw thrown
  return new TargetFailure(thrown.row.text, {}, thrown)
}
