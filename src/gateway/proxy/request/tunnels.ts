/** Requests for tunnels (CONNECT, RFC 9110 9.3.6). */
import type { TunnelOptions } from '../../../engines/http/contracts/requests.ts'
import { defaultLimits } from '../../../engines/http/limits/engine-limits.ts'
import { withoutRootDot } from '../../../ground/base/root-dot.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { ClientTlsSettings, ConnectRules } from '../../../ground/exchange/connection.ts'
import type { RespondVerdict } from '../../../ground/exchange/exchange.ts'
import { splitAuthority } from '../upstream/authority.ts'
import type { RequestContext } from './request-context.ts'

/** Counts the tunnels of each port that are open or being opened. */
export class TunnelCounts {
  readonly #open = new Map<number, number>()

  get(port: number): number {
    return this.#open.get(port) ?? 0
  }

  add(port: number, change: 1 | -1): void {
    this.#open.set(port, this.get(port) + change)
  }
}

interface TunnelRuntime {
  readonly tunnels: TunnelCounts
}

/**
 * Applies the rules of the listener to a CONNECT. Its Proxy-Authorization becomes Authorization, so that all
 * policies that check credentials find them, and nothing forwards them: the request ends at the gateway.
 */
export function admitTunnel(context: RequestContext, { tunnels }: TunnelRuntime): undefined {
  const { exchange, listener } = context
  const { request, port } = exchange
  if (request.method !== 'CONNECT') return
  const { connect: rules, tls } = listener?.frontend().client ?? {}
  if (rules?.mode !== 'Route') throw new GatewayError('method_not_allowed')
  const target = splitAuthority(request.authority)
  if (target?.port === undefined) throw new GatewayError('bad_request', 'CONNECT needs host:port')
  if (!rules.ports.includes(target.port)) {
    throw new GatewayError('tunnel_refused', `port ${target.port}`)
  }
  if (tunnels.get(port) >= (rules.maxTunnels ?? Number.POSITIVE_INFINITY)) {
    throw new GatewayError('tunnel_limit')
  }
  tunnels.add(port, 1)
  context.tunnel = { ...optionsOf(rules, target.host, tls), listenerPort: port }
  context.keepOriginal()
  const credentials = request.headers.get('proxy-authorization')
  request.headers.remove('proxy-authorization')
  request.headers.remove('authorization')
  if (credentials !== undefined) request.headers.set('authorization', credentials)
}

function optionsOf(
  { idleTimeoutMs, maxDurationMs, matchesServerName }: ConnectRules,
  host: string,
  tls: ClientTlsSettings | undefined,
): TunnelOptions {
  if (matchesServerName !== true) return { idleTimeoutMs, maxDurationMs }
  const helloTimeoutMs = tls?.handshakeTimeoutMs ?? defaultLimits.handshakeTimeoutMs
  return { idleTimeoutMs, maxDurationMs, serverName: withoutRootDot(host), helloTimeoutMs }
}

/** Returns the options of the tunnel; undefined for other requests. */
export function tunnelOptions({ tunnel, exchange }: RequestContext): TunnelOptions | undefined {
  // The client itself talks to a destination that it has chosen, and adds TLS if it wants to.
  return tunnel && { ...tunnel, isPlain: exchange.backend?.type === 'dynamic' }
}

/** Called when the exchange is over. */
export function endTunnel({ tunnel }: RequestContext, { tunnels }: TunnelRuntime): void {
  if (tunnel !== undefined) tunnels.add(tunnel.listenerPort, -1)
}

type Fields = RespondVerdict['headers']

/** Converts a refusal with 401 to one with 407, which asks for credentials of the proxy (RFC 9110 11.7). */
export function refusalByProxy<
  Response extends { readonly status: number; readonly headers: NonNullable<Fields> },
>(response: Response): Response {
  if (response.status !== 401) return response
  const headers = response.headers.map(([name, value]) => {
    const isChallenge = name.toLowerCase() === 'www-authenticate'
    return [isChallenge ? 'proxy-authenticate' : name, value] as const
  })
  return { ...response, status: 407, headers }
}
