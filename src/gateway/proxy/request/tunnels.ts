/** Requests for tunnels (CONNECT, RFC 9110 9.3.6). */
import type { ServerExchange, TunnelOptions } from '../../../engines/http/contracts/requests.ts'
import { defaultLimits } from '../../../engines/http/limits/engine-limits.ts'
import type { UpstreamAddress } from '../../../engines/http/sockets/upstream-address.ts'
import { withoutRootDot } from '../../../ground/base/root-dot.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { ClientTlsSettings, ConnectRules } from '../../../ground/exchange/connection.ts'
import type { Peer, RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { ConfigStore } from '../config/store.ts'
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
  readonly config: Pick<ConfigStore, 'listeners'>
}

/**
 * Applies the rules of the listener to a CONNECT. Its Proxy-Authorization becomes Authorization, so that all
 * policies that check credentials find them, and nothing forwards them: the request ends at the gateway.
 */
export function admitTunnel(
  context: RequestContext,
  { tunnels, config }: TunnelRuntime,
): undefined {
  const { exchange, listener } = context
  const { request, port } = exchange
  if (request.method !== 'CONNECT') return
  const { connect: rules, tls } = listener?.frontend().client ?? {}
  if (listener === undefined || rules === undefined || rules.mode === 'Deny')
    throw new GatewayError('method_not_allowed')
  const target = splitAuthority(request.authority)
  if (target?.port === undefined) throw new GatewayError('bad_request', 'CONNECT needs host:port')
  if (rules.ports?.includes(target.port) === false) {
    throw new GatewayError('tunnel_refused', `port ${target.port}`)
  }
  if (rules.mode === 'Tunnel') checkInner(context, target.port, listener.place.gateway, config)
  if (tunnels.get(port) >= (rules.maxTunnels ?? Number.POSITIVE_INFINITY)) {
    throw new GatewayError('tunnel_limit')
  }
  tunnels.add(port, 1)
  const options = { ...optionsOf(rules, target.host, tls), listenerPort: port }
  context.keepOriginal()
  const credentials = request.headers.get('proxy-authorization')
  request.headers.remove('proxy-authorization')
  request.headers.remove('authorization')
  const { port: innerPort } = target
  context.tunnel =
    rules.mode === 'Tunnel' ? { ...options, inner: innerAddress(exchange, innerPort) } : options
  if (credentials !== undefined) request.headers.set('authorization', credentials)
}

/** Throws if a tunnel to a port of the gateway may not be opened. */
function checkInner(
  { exchange }: RequestContext,
  port: number,
  gateway: string,
  { listeners }: TunnelRuntime['config'],
): void {
  // A client could otherwise put as many tunnels into each other as it likes.
  if (exchange.rawSource.connectHeaders !== undefined) {
    throw new GatewayError('tunnel_refused', 'a tunnel within a tunnel')
  }
  if (!listeners.serves(gateway, port)) {
    throw new GatewayError('tunnel_refused', `no listener of this Gateway has port ${port}`)
  }
}

/** Returns the address of a port of this gateway, for a connection that has the client of the CONNECT. */
function innerAddress(exchange: ServerExchange, port: number): UpstreamAddress {
  const { request, connectedSource, rawSource, local } = exchange
  const connectHeaders = new Map<string, string>()
  for (const [name, value] of request.headers.entries()) {
    const before = connectHeaders.get(name)
    connectHeaders.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  const { address } = local
  const inner = {
    source: connectedSource,
    rawSource: { ...addressOf(rawSource), connectHeaders },
    local: { address, port },
  }
  return { host: address, port, pool: `listener:${port}`, inner }
}

const addressOf = ({ address, port, proxyHeader }: Peer): Peer => ({ address, port, proxyHeader })

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
