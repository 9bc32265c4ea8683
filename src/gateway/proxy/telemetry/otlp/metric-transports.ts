/** How metrics reach a collector: OTLP over HTTP, with protobuf or JSON, and over gRPC. */
import { request as httpsRequest } from 'node:https'
import { fromBinary, fromJsonString } from '@bufbuild/protobuf'
import { ExportMetricsServiceResponseSchema } from '../../../../../proto/gen/called/otlp_metrics_pb.ts'
import { bufferOf } from '../../../../ground/base/buffers.ts'
import { request as httpRequest } from '../../../../ground/base/node-http.ts'
import { retryableCodes, retryableStatuses } from './senders.ts'

export interface TransportSettings {
  /** The whole URL. gRPC uses its scheme, host and port. */
  readonly endpoint: string
  /** Additional header fields, such as credentials. */
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/** What became of a request. Data that were refused for good must not be sent again. */
export type Answer =
  | { readonly isTaken: true; readonly rejected: number; readonly message: string }
  | { readonly isTaken: false; readonly isFinal: boolean; readonly message: string }

export interface MetricTransport {
  send(body: Uint8Array): Promise<Answer>
  close(): void
}

const maxAnswerBytes = 65_536

const failed = (message: string, isFinal = false): Answer => ({ isTaken: false, isFinal, message })

export class HttpTransport implements MetricTransport {
  readonly #settings: TransportSettings
  readonly #format: 'protobuf' | 'json'

  constructor(settings: TransportSettings, format: 'protobuf' | 'json') {
    this.#settings = settings
    this.#format = format
  }

  send(body: Uint8Array): Promise<Answer> {
    const { endpoint, headers, timeoutMs } = this.#settings
    const format = this.#format
    return new Promise((resolve) => {
      const open = endpoint.startsWith('https:') ? httpsRequest : httpRequest
      const request = open(endpoint, {
        method: 'POST',
        agent: false,
        signal: AbortSignal.timeout(timeoutMs),
        headers: {
          ...headers,
          'content-type': format === 'json' ? 'application/json' : 'application/x-protobuf',
          'content-length': body.length,
        },
      })
      request.once('error', (error) => resolve(failed(error.message)))
      request.once('response', (response) => {
        const { statusCode: status = 0 } = response
        const pieces: Buffer[] = []
        let bytes = 0
        response.on('data', (piece: Buffer) => {
          bytes += piece.length
          if (bytes <= maxAnswerBytes) pieces.push(piece)
        })
        response.once('error', (error) => resolve(failed(error.message)))
        response.once('end', () => {
          if (status >= 200 && status < 300) resolve(takenBy(Buffer.concat(pieces), format))
          else {
            const message = `the collector answers with ${status}`
            resolve(failed(message, !retryableStatuses.has(status)))
          }
        })
      })
      request.end(body)
    })
  }

  close(): void {}
}

type Grpc = typeof import('@grpc/grpc-js')

const exportMethod = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export'
const identity = (bytes: Buffer): Buffer => bytes
const unavailable = 14

export class GrpcTransport implements MetricTransport {
  readonly #settings: TransportSettings
  #client: InstanceType<Grpc['Client']> | undefined

  constructor(settings: TransportSettings) {
    this.#settings = settings
  }

  async send(body: Uint8Array): Promise<Answer> {
    const grpc = await import('@grpc/grpc-js')
    const client = this.#open(grpc)
    const metadata = new grpc.Metadata()
    for (const [name, value] of Object.entries(this.#settings.headers)) metadata.set(name, value)
    const options = { deadline: Date.now() + this.#settings.timeoutMs }
    return new Promise((resolve) => {
      client.makeUnaryRequest(
        exportMethod,
        identity,
        identity,
        bufferOf(body),
        metadata,
        options,
        (error, answer) => {
          if (error === null) resolve(takenBy(answer ?? Buffer.alloc(0), 'protobuf'))
          else {
            const message = `the collector answers with gRPC status ${error.code}: ${error.details}`
            resolve(failed(message, !retryableCodes.has(error.code ?? unavailable)))
          }
        },
      )
    })
  }

  #open(grpc: Grpc): InstanceType<Grpc['Client']> {
    if (this.#client !== undefined) return this.#client
    const { protocol, hostname, port } = new URL(this.#settings.endpoint)
    const isSecure = protocol === 'https:'
    const credentials = isSecure ? grpc.credentials.createSsl() : grpc.credentials.createInsecure()
    const target = `${hostname}:${port || (isSecure ? 443 : 80)}`
    this.#client = new grpc.Client(target, credentials, {
      'grpc.enable_retries': 0,
      'grpc.max_receive_message_length': maxAnswerBytes,
    })
    return this.#client
  }

  close(): void {
    this.#client?.close()
    this.#client = undefined
  }
}

/** Reads how many points a collector that answers with success has rejected. */
function takenBy(bytes: Buffer, format: 'protobuf' | 'json'): Answer {
  try {
    const schema = ExportMetricsServiceResponseSchema
    const { partialSuccess } =
      format === 'json'
        ? fromJsonString(schema, bytes.toString(), { ignoreUnknownFields: true })
        : fromBinary(schema, bytes)
    const { rejectedDataPoints = 0n, errorMessage = '' } = partialSuccess ?? {}
    const rejected = Math.max(0, Number(rejectedDataPoints))
    const message = `the collector rejects ${rejected} points: ${errorMessage}`
    return { isTaken: true, rejected, message }
  } catch {
    return { isTaken: true, rejected: 0, message: '' }
  }
}
