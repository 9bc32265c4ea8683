/** Sends the requests of the OAuth library through the engine of the gateway. */
import type { Callouts, HttpCallout, ServerTarget } from '../../ground/exchange/exchange.ts'
import { machineTls } from '../policies/backend-simple/tls/machine-tls.ts'

/** A request of the library. */
export interface OauthRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
}

const timeoutMs = 10_000
const maxBytes = 256 * 1024

/**
 * Sends a request to a URL, or to its path at `target`, and returns the whole response. Redirects are not followed,
 * because they could lead secrets to another server. Without a target, Host is that of the URL. Rejects with a
 * GatewayError.
 */
export async function sendOauth(
  callouts: Callouts,
  url: URL,
  { method, headers, body }: OauthRequest,
  target?: HttpCallout['target'],
): Promise<Response> {
  const sent = body === undefined || body === null ? undefined : Buffer.from(String(body))
  const answer = await callouts.http({
    target: target ?? serverOf(url),
    method,
    path: `${url.pathname}${url.search}`,
    headers: Object.entries({ ...(target === undefined && { host: url.host }), ...headers }),
    ...(sent && { body: sent }),
    timeoutMs,
    maxResponseBytes: maxBytes,
  })
  const { status } = answer
  const hasBody = status !== 204 && status !== 205 && status !== 304
  // A copy, because the memory of the call may be shared.
  const content = hasBody ? new Uint8Array(answer.body) : null
  return new Response(content, {
    status,
    headers: answer.headers.map(([name, value]) => [name, value]),
  })
}

const settings = new Map<boolean, ServerTarget['settings']>()

/** The server of a URL. Certificates are checked with the authorities that the machine trusts. */
function serverOf({ protocol, hostname, port }: URL): ServerTarget {
  const isSecure = protocol === 'https:'
  let found = settings.get(isSecure)
  if (found === undefined) {
    found = isSecure ? { tls: machineTls() } : {}
    settings.set(isSecure, found)
  }
  const byDefault = isSecure ? 443 : 80
  return {
    type: 'server',
    host: hostname,
    port: port === '' ? byDefault : Number(port),
    settings: found,
  }
}
