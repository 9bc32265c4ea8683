/**
 * Connections through a proxy: the gateway asks the proxy for a tunnel to the address (HTTP CONNECT, RFC 9110
 * 9.3.6; SOCKS 5, RFC 1928 and 1929). Then the socket carries the bytes of the destination. TLS to the
 * destination begins inside the tunnel. Names are sent to the proxy, which resolves them.
 */
import { isIPv4, isIPv6, type Socket, SocketAddress } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { GatewayError } from '../../../ground/errors/index.ts'
import { handshakeOptions } from '../../tls-client/handshake.ts'
import { openSocket, whenReady } from './dial.ts'
import type { UpstreamAddress, UpstreamProxy } from './upstream-address.ts'

interface TunnelCallbacks {
  /** Called with the socket, over which bytes can be sent once TLS to the destination is ready. */
  onSocket(socket: Socket, address: UpstreamAddress): void
  onFailed(error: GatewayError): void
}

/** The handshake with a proxy, step by step. `read` gets all received bytes that were not used yet. */
interface ProxyHandshake {
  readonly first: Buffer
  /** Returns the next bytes to send, the number of used bytes once the tunnel is open, or undefined. */
  read(bytes: Buffer): { readonly send: Buffer; readonly used: number } | number | undefined
}

const maxHeadBytes = 16 * 1024

/** Begins to connect. Returns a function that cancels it. */
export function openThroughProxy(
  proxy: UpstreamProxy,
  address: UpstreamAddress,
  { onSocket, onFailed }: TunnelCallbacks,
): () => void {
  const { host, port, tls } = proxy
  const socket = openSocket({ host, port, ...(tls && { tls }) }, undefined)
  const handshake =
    proxy.protocol === 'http' ? httpHandshake(proxy, address) : socksHandshake(proxy, address)
  let isOver = false
  let failure: Error | undefined
  let unused = Buffer.alloc(0)
  const end = () => {
    isOver = true
    socket.off('data', onData).off('end', onEnd).off('close', onClose)
  }
  const fail = (error: GatewayError) => {
    if (isOver) return
    end()
    socket.destroy()
    onFailed(error)
  }
  const onEnd = () => fail(failed('it closed the connection'))
  const onClose = () => fail(failed(failure?.message ?? 'it closed the connection', failure))
  const onData = (chunk: Buffer) => {
    unused = Buffer.concat([unused, chunk])
    try {
      for (let next = handshake.read(unused); next !== undefined; next = handshake.read(unused)) {
        if (typeof next === 'number') {
          end()
          socket.pause()
          if (next < unused.length) socket.unshift(unused.subarray(next))
          handOver(socket, address, onSocket)
          return
        }
        unused = unused.subarray(next.used)
        socket.write(next.send)
      }
      if (unused.length > maxHeadBytes) throw failed('its response is too long')
    } catch (error) {
      fail(error instanceof GatewayError ? error : failed(String(error)))
    }
  }
  // This listener is never removed, because an error of a socket without listeners would end the process.
  socket.on('error', (error) => {
    failure = error
  })
  socket.on('data', onData).once('end', onEnd).once('close', onClose)
  whenReady(socket, { ...address, tls }, () => socket.write(handshake.first))
  return () => {
    end()
    socket.destroy()
  }
}

/** Adds TLS to the destination if the address has it. */
function handOver(
  socket: Socket,
  address: UpstreamAddress,
  onSocket: TunnelCallbacks['onSocket'],
): void {
  const { tls } = address
  if (tls === undefined) onSocket(socket, address)
  else onSocket(connectTls({ socket, ...handshakeOptions(tls) }), address)
}

const failed = (detail: string, cause?: unknown) => new GatewayError('proxy_failed', detail, cause)

function httpHandshake(
  { credentials }: UpstreamProxy,
  { host, port }: UpstreamAddress,
): ProxyHandshake {
  const authority = `${isIPv6(host) ? `[${host}]` : host}:${port}`
  const { username = '', password = '' } = credentials ?? {}
  const basic = Buffer.from(`${username}:${password}`).toString('base64')
  const field = credentials === undefined ? '' : `proxy-authorization: Basic ${basic}\r\n`
  return {
    first: Buffer.from(
      `CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${field}\r\n`,
      'latin1',
    ),
    read(bytes) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end < 0) return undefined
      const status = Number(
        /^HTTP\/1\.[01] (\d{3})(?: |\r)/.exec(bytes.toString('latin1', 0, end + 2))?.[1],
      )
      if (Number.isNaN(status)) throw failed('its response is not HTTP/1.1')
      if (status < 200) return { send: Buffer.alloc(0), used: end + 4 }
      if (status >= 300) throw failed(`it answered CONNECT ${authority} with ${status}`)
      // Content-Length and Transfer-Encoding of the response have no meaning (RFC 9110 9.3.6).
      return end + 4
    },
  }
}

const socksVersion = 5
const noAuthentication = 0
const byPassword = 2
const replies = [
  '',
  'general failure',
  'not allowed by its rules',
  'network unreachable',
  'host unreachable',
  'connection refused',
  'TTL expired',
  'command not supported',
  'address type not supported',
]
const addressTypes = { ipv4: 1, name: 3, ipv6: 4 } as const

function socksHandshake({ credentials }: UpstreamProxy, address: UpstreamAddress): ProxyHandshake {
  const methods = credentials === undefined ? [noAuthentication] : [noAuthentication, byPassword]
  // Built when it is sent, so that an error in it, such as a name that is too long, fails the connection.
  const request = () => socksRequest(address)
  const answers = {
    method(bytes: Buffer) {
      if (bytes.length < 2) return undefined
      if (bytes[0] !== socksVersion) throw failed('its response is not SOCKS 5')
      const method = bytes[1] ?? 255
      if (!methods.includes(method)) throw failed('it accepts none of the authentication methods')
      read = method === byPassword ? answers.password : answers.request
      return { used: 2, send: method === byPassword ? passwordMessage(credentials) : request() }
    },
    password(bytes: Buffer) {
      if (bytes.length < 2) return undefined
      if (bytes[1] !== 0) throw failed('it refused the credentials')
      read = answers.request
      return { used: 2, send: request() }
    },
    request(bytes: Buffer) {
      if (bytes.length < 5) return undefined
      const reply = bytes[1] ?? 1
      if (reply !== 0) throw failed(`SOCKS: ${replies[reply] ?? `reply ${reply}`}`)
      const type = bytes[3]
      const size =
        type === addressTypes.ipv4 ? 4 : type === addressTypes.ipv6 ? 16 : 1 + (bytes[4] ?? 0)
      const end = 4 + size + 2
      return bytes.length < end ? undefined : end
    },
  }
  let read: ProxyHandshake['read'] = answers.method
  return {
    first: Buffer.from([socksVersion, methods.length, ...methods]),
    read: (bytes) => read(bytes),
  }
}

function passwordMessage(credentials: UpstreamProxy['credentials']): Buffer {
  const { username = '', password = '' } = credentials ?? {}
  const parts = [username, password].map((text) => bounded(Buffer.from(text), 'credentials'))
  return Buffer.concat([
    Buffer.from([1]),
    ...parts.flatMap((part) => [Buffer.from([part.length]), part]),
  ])
}

/** SOCKS 5 writes the length of a text as one byte. */
function bounded(bytes: Buffer, what: string): Buffer {
  if (bytes.length > 255) throw failed(`SOCKS: the ${what} has more than 255 bytes`)
  return bytes
}

function socksRequest({ host, port }: UpstreamAddress): Buffer {
  const portBytes = Buffer.from([port >> 8, port & 255])
  const name = bounded(Buffer.from(host), 'name')
  const destination = isIPv4(host)
    ? Buffer.from([addressTypes.ipv4, ...host.split('.').map(Number)])
    : isIPv6(host)
      ? Buffer.concat([Buffer.from([addressTypes.ipv6]), ipv6Bytes(host)])
      : Buffer.concat([Buffer.from([addressTypes.name, name.length]), name])
  return Buffer.concat([Buffer.from([socksVersion, 1, 0]), destination, portBytes])
}

/** Returns the 16 bytes of an address without a zone. */
function ipv6Bytes(host: string): Buffer {
  const { address } = new SocketAddress({ address: host.split('%', 1)[0] ?? host, family: 'ipv6' })
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)
  const [, before = '', ...numbers] = dotted ?? []
  const [a = 0, b = 0, c = 0, d = 0] = numbers.map(Number)
  const hex =
    dotted === null
      ? address
      : `${before}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  const [left = '', right] = hex.split('::')
  const words = (text: string) =>
    text
      .split(':')
      .filter((word) => word !== '')
      .map((word) => Number.parseInt(word, 16))
  const head = words(left)
  const tail = words(right ?? '')
  const all = [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail]
  return Buffer.from(all.flatMap((word) => [word >> 8, word & 255]))
}
