/** Real upstream servers for tests: each echoes the request that it received. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Certificate } from './certificates.ts'

export interface ReceivedRequest {
  readonly upstream: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
  /** TLS of the connection; omitted for plaintext. */
  readonly tls?: ReceivedTls
}

export interface ReceivedTls {
  readonly serverName: string | undefined
  /** The negotiated protocol, and the offered ones. */
  readonly alpn: string | undefined
  readonly offered: readonly string[]
  /** Common name of the client certificate; omitted without one. */
  readonly client?: string
}

export interface UpstreamOptions {
  readonly name?: string
  readonly answer?: Answer
  /** Serves TLS; `clientAuthority` demands client certificates from it. */
  readonly tls?: Certificate & { readonly clientAuthority?: string }
}

export interface Upstream {
  readonly port: number
  /** Everything received so far, in order. */
  readonly received: readonly ReceivedRequest[]
  /** Drops what was received so far. */
  forget(): void
  close(): Promise<void>
}

export type Answer = (received: ReceivedRequest, response: ServerResponse) => void

const echo: Answer = (received, response) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(received))
}

/** Starts an upstream on a free loopback port; by default it echoes the request as JSON. */
export function startUpstream(name = 'upstream', answer: Answer = echo): Promise<Upstream> {
  return listen({ name, answer })
}

/** Starts an upstream that serves TLS; by default it echoes the request as JSON. */
export function startTlsUpstream(
  options: UpstreamOptions & { readonly tls: object },
): Promise<Upstream> {
  return listen(options)
}

async function listen({
  name = 'upstream',
  answer = echo,
  tls,
}: UpstreamOptions): Promise<Upstream> {
  const received: ReceivedRequest[] = []
  const offers = new WeakMap<object, readonly string[]>()
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    read(name, request, offers).then(
      (whole) => {
        received.push(whole)
        answer(whole, response)
      },
      // The gateway has given the request up.
      () => response.destroy(),
    )
  }
  // Idle connections stay open, since a request that meets a close may rightly fail.
  const server =
    tls === undefined
      ? createServer({ keepAliveTimeout: 0 }, onRequest)
      : secured(tls, offers, onRequest)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const forget = () => {
    received.length = 0
  }
  return { port, received, forget, close: () => close(server) }
}

function secured(
  tls: NonNullable<UpstreamOptions['tls']>,
  offers: WeakMap<object, readonly string[]>,
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const { certificate, key, clientAuthority } = tls
  const options: ServerOptions & { ALPNCallback: (this: object, offer: Offer) => string } = {
    cert: certificate,
    key,
    ...(clientAuthority !== undefined && { ca: clientAuthority, requestCert: true }),
    ALPNCallback({ protocols }) {
      offers.set(this, protocols)
      return protocols.includes('http/1.1') ? 'http/1.1' : (protocols[0] ?? '')
    },
  }
  return createSecureServer(options, onRequest)
}

interface Offer {
  readonly servername: string
  readonly protocols: readonly string[]
}

async function read(
  upstream: string,
  request: IncomingMessage,
  offers: WeakMap<object, readonly string[]>,
): Promise<ReceivedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { method = '', url = '', headers } = request
  const body = Buffer.concat(chunks).toString('utf8')
  const tls = receivedTls(request.socket as TLSSocket, offers)
  return { upstream, method, path: url, headers, body, ...(tls && { tls }) }
}

function receivedTls(
  socket: TLSSocket,
  offers: WeakMap<object, readonly string[]>,
): ReceivedTls | undefined {
  if (socket.encrypted !== true) return undefined
  const { servername, alpnProtocol } = socket as TLSSocket & { servername?: string | false }
  const client = socket.getPeerCertificate().subject?.CN
  return {
    serverName: servername === false ? undefined : servername,
    alpn: alpnProtocol === false || alpnProtocol === null ? undefined : alpnProtocol,
    offered: offers.get(socket) ?? [],
    ...(client !== undefined && { client: String(client) }),
  }
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
