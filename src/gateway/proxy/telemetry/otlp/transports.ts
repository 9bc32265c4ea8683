/** How metrics and decision records reach the collector of the settings: OTLP over HTTP, with protobuf or JSON, and over gRPC. */
import { request as httpsRequest } from 'node:https'
import { bufferOf } from '../../../../ground/base/buffers.ts'
import { request as httpRequest } from '../../../../ground/base/node-http.ts'
import { isRetryable, maxAnswerBytes, retryAfterMs, retryableStatuses } from './senders.ts'
import { readPartialSuccess } from './values.ts'

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
  | {
      readonly isTaken: false
      readonly isFinal: boolean
      readonly message: string
      /** How long the collector wants no further requests. */
      readonly afterMs: number
    }

export interface Transport {
  send(body: Uint8Array): Promise<Answer>
  close(): void
}

const failed = (message: string, isFinal = false, afterMs = 0): Answer => ({
  isTaken: false,
  isFinal,
  message,
  afterMs,
})

/** A protocol as the variables of the OpenTelemetry specification name it. */
export type OtlpProtocol = 'grpc' | 'http/protobuf' | 'http/json'

/** `method` is the one that gRPC calls. */
export const openTransport = (
  settings: TransportSettings,
  protocol: OtlpProtocol,
  method: string,
): Transport =>
  protocol === 'grpc'
    ? new GrpcTransport(settings, method)
    : new HttpTransport(settings, protocol === 'http/json')

class HttpTransport implements Transport {
  readonly #settings: TransportSettings
  readonly #isJson: boolean

  constructor(settings: TransportSettings, isJson: boolean) {
    this.#settings = settings
    this.#isJson = isJson
  }

  send(body: Uint8Array): Promise<Answer> {
    const { endpoint, headers, timeoutMs } = this.#settings
    const isJson = this.#isJson
    return new Promise((resolve) => {
      const open = endpoint.startsWith('https:') ? httpsRequest : httpRequest
      const request = open(endpoint, {
        method: 'POST',
        agent: false,
        signal: AbortSignal.timeout(timeoutMs),
        headers: {
          ...headers,
          'content-type': isJson ? 'application/json' : 'application/x-protobuf',
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
          if (status >= 200 && status < 300) resolve(takenBy(Buffer.concat(pieces), isJson))
          else {
            const message = `the collector answers with ${status}`
            const afterMs = retryAfterMs(response.headers['retry-after'])
            resolve(failed(message, !retryableStatuses.has(status), afterMs))
          }
        })
      })
      request.end(body)
    })
  }

  close(): void {}
}

type Grpc = typeof import('@grpc/grpc-js')

const identity = (bytes: Buffer): Buffer => bytes

class GrpcTransport implements Transport {
  readonly #settings: TransportSettings
  readonly #method: string
  #client: InstanceType<Grpc['Client']> | undefined

  constructor(settings: TransportSettings, method: string) {
    this.#settings = settings
    this.#method = method
  }

  async send(body: Uint8Array): Promise<Answer> {
    const grpc = await import('@grpc/grpc-js')
    const client = this.#open(grpc)
    const metadata = new grpc.Metadata()
    for (const [name, value] of Object.entries(this.#settings.headers)) metadata.set(name, value)
    const options = { deadline: Date.now() + this.#settings.timeoutMs }
    return new Promise((resolve) => {
      client.makeUnaryRequest(
        this.#method,
        identity,
        identity,
        bufferOf(body),
        metadata,
        options,
        (error, answer) => {
          if (error === null) resolve(takenBy(answer ?? Buffer.alloc(0)))
          else {
            const message = `the collector answers with gRPC status ${error.code}: ${error.details}`
            resolve(failed(message, !isRetryable(error)))
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

function takenBy(bytes: Buffer, isJson = false): Answer {
  const { rejected, message } = readPartialSuccess(bytes, isJson)
  return { isTaken: true, rejected, message: `the collector rejects ${rejected} items: ${message}` }
}
