/** A row of the catalogue of errors, and how rows are made. */

/** The `error` parameter of a Proxy-Status field (RFC 9209 section 2.3). */
export type ProxyError =
  | 'dns_error'
  | 'destination_not_found'
  | 'destination_unavailable'
  | 'destination_ip_prohibited'
  | 'connection_limit_reached'
  | 'connection_terminated'
  | 'connection_timeout'
  | 'tls_protocol_error'
  | 'http_request_error'
  | 'http_request_denied'
  | 'http_response_body_size'
  | 'http_response_timeout'
  | 'http_protocol_error'
  | 'http_upgrade_failed'
  | 'proxy_internal_error'
  | 'proxy_configuration_error'

export interface ErrorRow {
  /** HTTP status of the response; 0 if the error is never sent to clients. */
  readonly status: number
  /** Which side caused the error. */
  readonly source: 'downstream' | 'upstream' | 'internal'
  /** Whether the request may be retried; `reused`: only if its connection has served another request. */
  readonly retry: 'no' | 'yes' | 'reused'
  /** The `reason` in the access log and in metrics; one of a fixed set. */
  readonly reason: string
  readonly proxyError: ProxyError
  /** The body of the response, which reveals nothing internal. */
  readonly text: string
  /** The explanation in docs/errors.md. */
  readonly doc: string
}

export const downstream = (
  status: number,
  proxyError: ProxyError,
  reason: string,
  text: string,
  doc: string,
): ErrorRow => ({
  status,
  source: 'downstream',
  retry: 'no',
  reason,
  proxyError,
  text,
  doc,
})

/** The error of a request that breaks a rule. */
export const invalid = (status: number, text: string, doc: string): ErrorRow =>
  downstream(status, 'http_request_error', 'InvalidRequest', text, doc)

export const upstream = (
  status: number,
  proxyError: ProxyError,
  retry: ErrorRow['retry'],
  reason: string,
  text: string,
  doc: string,
): ErrorRow => ({ status, source: 'upstream', retry, reason, proxyError, text, doc })

export const internal = (
  status: number,
  proxyError: ProxyError,
  reason: string,
  text: string,
  doc: string,
): ErrorRow => ({
  status,
  source: 'internal',
  retry: 'no',
  reason,
  proxyError,
  text,
  doc,
})

/** The error of a request that the gateway fails to serve. */
export const failed = (text: string, doc: string): ErrorRow =>
  internal(500, 'proxy_internal_error', 'Internal', text, doc)

/** The error of a request for which the configuration cannot be applied. */
export const misconfigured = (text: string, doc: string): ErrorRow =>
  internal(500, 'proxy_configuration_error', 'Internal', text, doc)

/** The error of something that is never reported to clients. */
export const withoutResponse = (text: string, doc: string): ErrorRow =>
  internal(0, 'proxy_internal_error', 'Internal', text, doc)
