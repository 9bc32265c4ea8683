/** One row of the catalogue of errors. */

/** Whose fault it is. */
type ErrorSource = 'downstream' | 'upstream' | 'internal'

/** May the request be sent again? `reused` = only when the connection had served before. */
type RetryRule = 'no' | 'yes' | 'reused'

export interface ErrorRow {
  readonly status: number
  readonly source: ErrorSource
  readonly retry: RetryRule
  /** `reason` of access log and metrics (reference vocabulary). */
  readonly reason: string
  /** What the client reads; leaks no internals. */
  readonly text: string
  /** What a reader of the docs learns. */
  readonly doc: string
}

export const row = (
  status: number,
  source: ErrorSource,
  retry: RetryRule,
  reason: string,
  text: string,
  doc: string,
): ErrorRow => ({ status, source, retry, reason, text, doc })
