/** TLS clients for tests: handshakes alone, single requests, and connections that are kept. */
import { once } from 'node:events'
import { request } from 'node:https'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { answerOf, type TestRequest, type TestResponse } from './http-client.ts'

export interface TlsClient {
  /** Trusted authorities, in PEM. */
  readonly ca: string
  /** Name in the ClientHello; not sent if empty. */
  readonly servername: string
  /** What the client proves itself with, in PEM. */
  readonly cert?: string
  readonly key?: string
}

/** Ends a handshake with the loopback address; rejects if it fails. */
export function handshake(
  port: number,
  client: TlsClient,
  options: ConnectionOptions = {},
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ...client, ...options })
    socket.once('secureConnect', () => {
      socket.off('error', reject)
      socket.on('error', () => {})
      resolve(socket)
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed before the handshake was over')))
  })
}

/** The first bytes of a client that asks for a name. */
export async function clientHello(servername: string): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', servername })
  client.on('error', () => {})
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [hello] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  server.close()
  return hello
}

/** SHA-256 of the certificate that the server shows for a name. */
export async function shownCertificate(
  port: number,
  client: TlsClient,
  options: ConnectionOptions = {},
): Promise<string> {
  const socket = await handshake(port, client, options)
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

/** One request on a connection of its own; the Host defaults to the server name. */
export function sendTls(
  port: number,
  client: TlsClient,
  { method = 'GET', path = '/', host = client.servername, headers, body }: TestRequest = {},
): Promise<TestResponse> {
  const outgoing = request({
    host: '127.0.0.1',
    port,
    method,
    path,
    agent: false,
    ...client,
    headers: { host, ...headers },
  })
  outgoing.end(body)
  return answerOf(outgoing)
}

/**
 * The name of the key that sealed the ticket of a session (RFC 5077 4: its first 16 bytes), as hex.
 * OpenSSL writes a session as a DER SEQUENCE with the ticket in an OCTET STRING below tag [10]; Node
 * may put words of its own before it.
 */
export function ticketKeyOf(session: Buffer): string {
  const ticketTag = 0xaa
  const sequenceTag = 0x30
  let at = session.indexOf(sequenceTag)
  while (at >= 0 && contentOf(session, at).end !== session.length) {
    at = session.indexOf(sequenceTag, at + 1)
  }
  if (at < 0) throw new Error('not a session of OpenSSL')
  at = contentOf(session, at).start
  while (at < session.length) {
    const { start, end } = contentOf(session, at)
    if (session[at] === ticketTag) {
      const ticket = contentOf(session, start)
      return session.toString('hex', ticket.start, ticket.start + 16)
    }
    at = end
  }
  throw new Error('the session has no ticket')
}

/** Start and end of the content of the DER element at `at`. */
function contentOf(der: Buffer, at: number): { start: number; end: number } {
  const first = der.readUInt8(at + 1)
  if (first < 0x80) return { start: at + 2, end: at + 2 + first }
  const size = first - 0x80
  const start = at + 2 + size
  const length = size > 0 && size <= 4 && start <= der.length ? der.readUIntBE(at + 2, size) : NaN
  return { start, end: start + length }
}
