/** Error of a request to the API server that was refused or got no response. */
export class KubeError extends Error {
  /** HTTP status; 0 if there was no response. */
  readonly status: number
  /** Reason of the `metav1.Status`, such as `Conflict` or `Expired`; empty if there was none. */
  readonly reason: string
  /** How long the server asks clients to wait, in milliseconds; undefined if it does not. */
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

  /** Whether the resourceVersion is too old and the client must list again (410 Gone, or Expired). */
  get isExpired(): boolean {
    return this.status === 410 || this.reason === 'Expired' || this.reason === 'Gone'
  }

  get isConflict(): boolean {
    return this.status === 409
  }

  get isNotFound(): boolean {
    return this.status === 404
  }

  /** Whether the request may succeed later. */
  get isTransient(): boolean {
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

/** Creates the error of a response from its `Status` object, or from its text if it has none. */
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
