/**
 * Which headers of clients reach the servers, and which of them may identify a client there. A header is
 * harmless only if it is in the list below: servers read credentials from headers of any name.
 */

/** Headers that are not forwarded: the gateway sets them, or they concern one connection. */
const ownHeaders = new Set([
  'host',
  'accept',
  'accept-encoding',
  'content-type',
  'content-length',
  'content-encoding',
  'content-md5',
  'digest',
  'content-digest',
  'expect',
  'last-event-id',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'origin',
])

/** Without this header, a server may use any content coding (RFC 9110 section 12.5.3). */
export const acceptIdentity = ['accept-encoding', 'identity'] as const

/** Takes a name in lower case. */
export const isOwnHeader = (name: string): boolean => ownHeaders.has(name)

/** Headers by which no server recognizes a client: what it is, traces, and what proxies add. */
const harmless = new Set([
  'accept-language',
  'b3',
  'baggage',
  'cache-control',
  'cdn-loop',
  'cf-connecting-ip',
  'cf-ipcountry',
  'cf-ray',
  'cf-visitor',
  'connection',
  'dnt',
  'forwarded',
  'keep-alive',
  'pragma',
  'priority',
  'te',
  'traceparent',
  'tracestate',
  'transfer-encoding',
  'true-client-ip',
  'uber-trace-id',
  'upgrade-insecure-requests',
  'user-agent',
  'via',
  'x-amzn-trace-id',
  'x-cloud-trace-context',
  'x-correlation-id',
  'x-envoy-attempt-count',
  'x-envoy-expected-rq-timeout-ms',
  'x-envoy-external-address',
  'x-envoy-original-path',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-proto',
  'x-forwarded-scheme',
  'x-real-ip',
  'x-request-id',
  'x-request-start',
])

/** Beginnings of such names. `mcp-param-` repeats arguments of the message, which only its server gets. */
const harmlessPrefixes = ['mcp-param-', 'sec-ch-ua', 'sec-fetch-', 'x-b3-', 'x-datadog-']

/** Whether a server may recognize a client by the value of this header. Takes a name in lower case. */
export function mayIdentify(name: string): boolean {
  if (harmless.has(name) || ownHeaders.has(name)) return false
  for (const prefix of harmlessPrefixes) if (name.startsWith(prefix)) return false
  return true
}
