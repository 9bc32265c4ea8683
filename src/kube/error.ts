/** A request to the API server that was refused or got no answer. */
export class KubeError extends Error {
  /** HTTP status; 0 where no answer came. */
  readonly status: number
  /** `metav1.Status` reason such as `Conflict` or `Expired`; empty where the answer had none. */
  readonly reason: string
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined

  constructor(
    status: number,
    reason: string,
    message: string,
    options: ErrorOptions & { readonly retryAfterMs?: number | undefined } = {},
  ) {
    super(message, options)
    this.name = 'KubeError'
    this.status = status
    this.reason = reason
    this.retryAfterMs = options.retryAfterMs
  }

  /** The version to read from is not held any more: list again (410 Gone, or Expired in a watch). */
  get isExpired(): boolean {
    return this.status === 410 || this.reason === 'Expired' || this.reason === 'Gone'
  }

  get isConflict(): boolean {
    return this.status === 409
  }

  get isNotFound(): boolean {
    return this.status === 404
  }

  get isForbidden(): boolean {
    return this.status === 403 || this.status === 401
  }

  /** No answer, or one that says that another may come. */
  get isPassing(): boolean {
    const { status } = this
    return status === 0 || status === 409 || status === 429 || status >= 500
  }
}

interface StatusBody {
  readonly message?: string
  readonly reason?: string
  readonly code?: number
  readonly details?: { readonly retryAfterSeconds?: number }
}

/** The error that an answer tells: a `Status` object where the server sent one, else its text. */
export function errorOf(status: number, body: unknown, retryAfter?: string): KubeError {
  const { message, reason, details, code } = (
    typeof body === 'object' && body !== null ? body : {}
  ) as StatusBody
  const seconds = details?.retryAfterSeconds ?? Number(retryAfter ?? Number.NaN)
  const text = message ?? (typeof body === 'string' && body !== '' ? body.trim() : '')
  return new KubeError(status || (code ?? 0), reason ?? '', text || `HTTP status ${status}`, {
    ...(Number.isFinite(seconds) && { retryAfterMs: seconds * 1000 }),
  })
}
