/** Opens the sockets of upstream connections: TCP, with TLS on top if the address requires it. */
import { connect as connectTcp, type NetConnectOpts, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { HttpVersion } from '../../../ground/exchange/connection.ts'
import { type ClientTls, handshakeOptions } from '../../tls-client/handshake.ts'
import type { ReadInto } from '../bytes/read-buffers.ts'
import { socketHighWaterMark } from '../bytes/write-limits.ts'
import { defaultKeepalive, setKeepalive } from './tcp-keepalive.ts'
import type { UpstreamAddress } from './upstream-address.ts'

/** What a socket is opened to: a backend, or a proxy before it. */
interface SocketAddress extends Pick<UpstreamAddress, 'host' | 'port' | 'keepalive'> {
  readonly tls?: ClientTls
}

/** Begins to connect. Failures are events of the socket, which `dialError` converts to an error. */
export function openSocket(
  { host, port, tls, keepalive = defaultKeepalive }: SocketAddress,
  onread: ReadInto | undefined,
): Socket {
  const common = {
    host,
    port,
    noDelay: true,
    allowHalfOpen: true,
    highWaterMark: socketHighWaterMark,
    ...(onread && { onread }),
  }
  const socket =
    tls === undefined
      ? connectTcp(common as NetConnectOpts)
      : connectTls({ ...common, ...handshakeOptions(tls) } as ConnectionOptions)
  setKeepalive(socket, keepalive)
  return socket
}

/** Calls `onReady` once, when bytes of the application may be written. */
export function whenReady(
  socket: Socket,
  { tls }: { readonly tls?: object | undefined },
  onReady: () => void,
): void {
  socket.once(tls === undefined ? 'connect' : 'secureConnect', onReady)
}

/** The HTTP version that the server has selected by ALPN; HTTP/1.1 if it selected none. */
export function selectedVersion(socket: Socket): HttpVersion {
  return (socket as Partial<TLSSocket>).alpnProtocol === 'h2' ? '2' : '1.1'
}

/** Returns the error of a connection that failed before it was ready. */
export function dialError(address: UpstreamAddress, error: Error | undefined): GatewayError {
  if (error instanceof GatewayError) return error
  const call = (error as NodeJS.ErrnoException | undefined)?.syscall
  if (call === 'getaddrinfo') return new GatewayError('dns_failed', error?.message, error)
  const isTls =
    address.tls !== undefined && call !== 'connect' && !(error instanceof AggregateError)
  return new GatewayError(isTls ? 'upstream_tls_failed' : 'connect_failed', error?.message, error)
}

/** Returns the error of a connection that was ready; TLS 1.3 refuses client certificates that late. */
export function lostError(error: Error | undefined): GatewayError {
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? ''
  const isTls = code.startsWith('ERR_SSL_')
  return new GatewayError(isTls ? 'upstream_tls_failed' : 'upstream_reset', error?.message, error)
}
