/** How the configuration server receives the streams of proxies: over gRPC. */
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js'
import { bufferOf } from '../../ground/base/buffers.ts'
import { deltaMethodPath } from '../wire/discovery.ts'
import { bind } from './bind.ts'
import { RenewableCredentials, type TlsSource, tlsProblem } from './credentials.ts'

/** The server's side of a stream. */
export type StreamCall = Pick<
  ServerDuplexStream<Uint8Array, Uint8Array>,
  'metadata' | 'destroyed' | 'getPeer' | 'on' | 'write' | 'end' | 'emit'
>

interface Listener {
  /** The bound address, `host:port`. */
  readonly address: string
  /** Stops listening. Resolves when no stream is open. */
  close(): Promise<void>
}

/**
 * Listens at `host:port` or `:port` (all addresses) and calls `onCall` with every new stream. Rejects with
 * `port_in_use` or `address_unusable` if the address cannot be bound.
 */
export type Listen = (address: string, onCall: (call: StreamCall) => void) => Promise<Listener>

interface GrpcOptions {
  /** If omitted, streams are plaintext. */
  readonly tls?: TlsSource | undefined
  readonly onNotice?: ((text: string) => void) | undefined
}

/** Pings detect a peer that is gone without closing its connection. */
const channelOptions = {
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.max_receive_message_length': 64 << 20,
  'grpc.max_send_message_length': -1,
} as const

const same = (bytes: Buffer): Uint8Array => bytes

/** Rejects also if TLS is configured and the certificate cannot be used. */
export const listenOverGrpc =
  (options: GrpcOptions): Listen =>
  async (address, onCall) => {
    const server = new Server(channelOptions)
    const method = {
      path: deltaMethodPath,
      requestStream: true,
      responseStream: true,
      requestSerialize: bufferOf,
      requestDeserialize: same,
      responseSerialize: bufferOf,
      responseDeserialize: same,
    }
    server.addService(
      { deltaAggregatedResources: method },
      { deltaAggregatedResources: (call: StreamCall) => onCall(call) },
    )
    const { credentials, end } = credentialsOf(options)
    const bound = await bind(server, address, credentials)
    return { address: bound, close: () => shutDown(server, end) }
  }

function credentialsOf({ tls, onNotice }: GrpcOptions) {
  if (tls === undefined) return { credentials: ServerCredentials.createInsecure(), end: undefined }
  const problem = tlsProblem(tls.current())
  if (problem !== undefined) throw new Error(`the certificate of the xDS server: ${problem}`)
  const credentials = new RenewableCredentials(tls.current())
  const end = tls.onChange((pair) => {
    const wrong = tlsProblem(pair)
    if (wrong === undefined) credentials.renew(pair)
    else onNotice?.(`the new certificate of the xDS server is not used: ${wrong}`)
  })
  return { credentials, end }
}

async function shutDown(server: Server, endTls: (() => void) | undefined): Promise<void> {
  endTls?.()
  await new Promise<void>((resolve) => {
    const force = setTimeout(() => server.forceShutdown(), 1_000)
    server.tryShutdown(() => {
      clearTimeout(force)
      resolve()
    })
  })
}
