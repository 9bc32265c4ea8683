/**
 * The catalogue of errors. Every failure that is neither wrong configuration (an Outcome) nor an
 * expected refusal (a Verdict) is a GatewayError with one row of this table. Status, retry, reason and
 * text follow from the row, never from the code that catches the error. docs/errors.md lists the same
 * rows. Codes are never reused.
 */

import {
  downstream,
  type ErrorRow,
  failed,
  internal,
  invalid,
  misconfigured,
  upstream,
} from './row.ts'
import { unansweredErrors } from './unanswered.ts'

export const errorCatalogue = {
  bad_request: invalid(
    400,
    'invalid request',
    'The request breaks HTTP/1.1 framing or syntax; the connection is closed.',
  ),
  form_refused: invalid(
    400,
    'multipart body refused',
    'A multipart body for a model is malformed, or has a text field after a file although the gateway needs it before. The response names the part or the field.',
  ),
  request_timeout: invalid(
    408,
    'request head timeout',
    'The client did not send its request head in time.',
  ),
  request_body_timeout: invalid(
    408,
    'request body too slow',
    'The client sent the request body more slowly than `SLUICE_MIN_REQUEST_BODY_RATE` allows.',
  ),
  uri_too_long: invalid(
    414,
    'request target too long',
    'The request line is longer than the head limit.',
  ),
  headers_too_large: invalid(
    431,
    'request header fields too large',
    'Too many header fields, or a head larger than the limit.',
  ),
  not_implemented: invalid(501, 'not implemented', 'The request uses an unknown transfer coding.'),
  version_not_supported: invalid(
    505,
    'HTTP version not supported',
    'The request line names another protocol version.',
  ),
  expectation_failed: invalid(
    417,
    'expectation failed',
    'The request has an Expect header other than 100-continue.',
  ),
  ambiguous_path: invalid(
    400,
    'ambiguous path',
    'Servers may interpret the path differently, and the setting `ambiguous-paths` refuses such paths.',
  ),
  method_not_allowed: invalid(
    405,
    'method not allowed',
    'The method is not allowed. CONNECT is refused unless `frontend.connect` of the Gateway allows it.',
  ),
  body_too_large: invalid(
    413,
    'request body too large',
    'A policy needs the whole body, but the body exceeds its limit, such as maxBufferSize.',
  ),
  client_closed: downstream(
    499,
    'http_request_error',
    'ClientClosed',
    'client closed the connection',
    'The client closed the connection before the response was complete. The status is logged only.',
  ),
  listener_not_found: downstream(
    404,
    'destination_not_found',
    'NotFound',
    'listener not found',
    'No listener on the port matches the host.',
  ),
  route_not_found: downstream(
    404,
    'destination_not_found',
    'NotFound',
    'route not found',
    'No rule of the listener matches the request.',
  ),
  misdirected: downstream(
    421,
    'destination_not_found',
    'NotFound',
    'misdirected request',
    'The TLS connection was made for another listener.',
  ),
  network_unauthorized: downstream(
    403,
    'http_request_denied',
    'Authorization',
    'connection not allowed',
    'Rules of `frontend.networkAuthorization` refuse the addresses of the connection.',
  ),
  no_backends: internal(
    500,
    'proxy_configuration_error',
    'NoHealthyBackend',
    'no valid backends',
    'The rule has no backendRef, or all have weight 0.',
  ),
  backend_invalid: internal(
    500,
    'proxy_configuration_error',
    'NoHealthyBackend',
    'backend does not exist',
    'The chosen backendRef has an unsupported kind, or no ReferenceGrant permits it.',
  ),
  service_not_found: internal(
    500,
    'proxy_configuration_error',
    'NotFound',
    'service not found',
    'The chosen backendRef names a Service, a port of one, or a GatewayBackend that does not exist.',
  ),
  backend_unsupported: internal(
    500,
    'proxy_configuration_error',
    'NoHealthyBackend',
    'backend is not supported yet',
    'This version does not support the type or a setting of the backend.',
  ),
  backend_needs_tls: misconfigured(
    'backend requires TLS, but no policy configures it',
    'The appProtocol of the Service port is https or wss, and neither a BackendTLSPolicy nor backend.tls applies to it.',
  ),
  policy_unenforceable: misconfigured(
    'a policy that covers this route cannot be enforced',
    'A security policy is invalid or not supported yet; the route fails closed.',
  ),
  credential_missing: misconfigured(
    'the credential for the backend is missing or cannot be used',
    'The `backend.auth` that applies to the backend refers to a Secret or an entry that does not exist, or is invalid. The condition of its object and the access log say which one. Nothing is sent to the backend.',
  ),
  rule_unusable: misconfigured(
    'this route rule cannot be served',
    'The rule has a filter or match that is invalid or not supported.',
  ),
  filter_failed: failed(
    'failed to apply filters',
    'A rewrite or header change produced an invalid request.',
  ),
  endpoint_picker_failed: internal(
    503,
    'destination_unavailable',
    'ExtProc',
    'endpoint picker failed',
    'The endpoint picker of an InferencePool could not be reached, failed, or picked no ready endpoint of the pool, and its failureMode is FailClose.',
  ),
  no_endpoints: upstream(
    503,
    'destination_unavailable',
    'no',
    'NoHealthyBackend',
    'no healthy backends',
    'The Service or InferencePool has no ready endpoint, and no terminating one that still serves.',
  ),
  dns_failed: upstream(
    503,
    'dns_error',
    'yes',
    'NoHealthyBackend',
    'backends required DNS resolution which failed',
    'The host of the backend could not be resolved.',
  ),
  connect_failed: upstream(
    503,
    'destination_unavailable',
    'yes',
    'UpstreamFailure',
    'upstream call failed: connection failure',
    'The connection was refused, reset or unreachable.',
  ),
  upstream_tls_failed: upstream(
    503,
    'tls_protocol_error',
    'yes',
    'UpstreamFailure',
    'upstream call failed: TLS failure',
    'The TLS handshake with the upstream failed, or its certificate does not verify.',
  ),
  connect_timeout: upstream(
    504,
    'connection_timeout',
    'yes',
    'Timeout',
    'upstream call timeout',
    'The connection was not established in time.',
  ),
  destination_refused: downstream(
    403,
    'destination_ip_prohibited',
    'Authorization',
    'destination is not allowed',
    'The destination of a dynamic forward proxy request is not allowed.',
  ),
  tunnel_refused: downstream(
    403,
    'http_request_denied',
    'Authorization',
    'tunnel is not allowed',
    'A CONNECT request names a port that `frontend.connect.ports` does not list, or with `mode: Tunnel` a port without a listener of the Gateway, or it is itself in such a tunnel.',
  ),
  tunnel_limit: downstream(
    503,
    'connection_limit_reached',
    'Overloaded',
    'too many tunnels',
    'The listener has as many open tunnels as `frontend.connect.maxTunnels` allows.',
  ),
  tunnel_expired: downstream(
    504,
    'connection_timeout',
    'Timeout',
    'tunnel open for too long',
    'A tunnel was open for `frontend.connect.maxDuration` and was cut. No status is sent.',
  ),
  server_name_refused: downstream(
    403,
    'http_request_denied',
    'Authorization',
    'TLS server name does not match the tunnel',
    'The client of a tunnel did not begin with TLS for the host of its CONNECT request, which `frontend.connect.serverName` requires. The tunnel was cut. No status is sent.',
  ),
  proxy_failed: upstream(
    502,
    'destination_unavailable',
    'yes',
    'UpstreamFailure',
    'upstream call failed: the proxy in front of the backend failed',
    'The proxy of `backend.tunnel` cannot be reached, or refused the connection to the backend. The log has its response.',
  ),
  upstream_reset: upstream(
    503,
    'connection_terminated',
    'reused',
    'UpstreamFailure',
    'upstream call failed: connection closed before the response',
    'The upstream closed before it sent a response head.',
  ),
  upstream_malformed: upstream(
    502,
    'http_protocol_error',
    'no',
    'UpstreamFailure',
    'upstream call failed: malformed response',
    'The upstream sent an invalid HTTP response.',
  ),
  response_too_large: upstream(
    502,
    'http_response_body_size',
    'no',
    'UpstreamFailure',
    'response body too large',
    'The policy `traffic.buffer` holds responses, and the body of this one exceeds its limit.',
  ),
  upstream_upgrade: upstream(
    502,
    'http_upgrade_failed',
    'no',
    'UpstreamFailure',
    'upgrade failed',
    'The upstream switched to a protocol that the client did not request.',
  ),
  upstream_timeout: upstream(
    504,
    'http_response_timeout',
    'yes',
    'Timeout',
    'upstream call timeout',
    'The backend request timeout passed.',
  ),
  route_timeout: upstream(
    504,
    'http_response_timeout',
    'no',
    'Timeout',
    'request timeout',
    'The route request timeout passed.',
  ),
  stream_idle: downstream(
    504,
    'connection_timeout',
    'Timeout',
    'no bytes for too long',
    'A forwarded TCP or TLS connection, or a tunnel, was idle for too long and was reset. No status is sent.',
  ),
  callout_failed: failed(
    'a service that decides on requests failed',
    'A service that a policy calls failed or did not answer in time.',
  ),
  credentials_failed: failed(
    'backend authentication failed',
    'The credentials that the backend needs cannot be made: the default cloud credentials are missing, an authorization server refuses the gateway, or an expression has no value.',
  ),
  credentials_unavailable: internal(
    503,
    'proxy_internal_error',
    'BackendAuth',
    'the credential for the backend is not available now',
    'A token endpoint that backend.auth needs cannot be reached, fails, or sends no usable answer. The request is not sent without the credential.',
  ),
  prompt_guard_failed: internal(
    503,
    'proxy_internal_error',
    'Guardrail',
    'prompt guard failed',
    'A prompt guard called another service and got no valid response. The guarded content does not pass.',
  ),
  response_unguardable: internal(
    502,
    'proxy_internal_error',
    'Guardrail',
    'the response cannot be guarded',
    'The response of the backend is not JSON that the guards of `traffic.jsonGuard` can read, or it exceeds maxBufferSize. The client gets no part of it; a stream is cut before the part that cannot be read.',
  ),
  ext_proc_failed: internal(
    500,
    'proxy_internal_error',
    'ExtProc',
    'ext_proc failed',
    'An external processor could not be reached, failed, or broke the protocol.',
  ),
  response_failed: internal(
    500,
    'proxy_internal_error',
    'Internal',
    'response transformation failed',
    'A transformation makes the body of the response from a body that exceeds maxBufferSize.',
  ),
  overloaded: internal(
    503,
    'proxy_internal_error',
    'Internal',
    'gateway overloaded',
    'No buffer or connection was available for the request.',
  ),
  circuit_open: internal(
    503,
    'connection_limit_reached',
    'Internal',
    'too many requests to the backend',
    'A circuit breaker limits the concurrent requests to the backend (`backend.circuitBreaker`).',
  ),
  core_trapped: failed('internal error', 'The WebAssembly core trapped; the instance was dropped.'),
  bug: failed('internal error', 'An unexpected exception; a bug.'),
  ...unansweredErrors,
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof errorCatalogue

/** An error of the catalogue. Code that rethrows it adds its location with `at`. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly row: ErrorRow
  /** Details for the log that clients must not see. */
  readonly detail: string | undefined
  /** Locations of the error, innermost first, such as `endpoint 10.0.0.1:80`. */
  readonly where: string[] = []

  constructor(code: ErrorCode, detail?: string, cause?: unknown) {
    const found = errorCatalogue[code]
    super(detail === undefined ? found.text : `${found.text}: ${detail}`, { cause })
    this.detail = detail
    this.name = 'GatewayError'
    this.code = code
    this.row = found
  }

  /** Adds a location and returns the same error, for use in a rethrow. */
  at(place: string): this {
    this.where.push(place)
    return this
  }
}
