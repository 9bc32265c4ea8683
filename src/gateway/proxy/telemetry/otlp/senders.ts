/** The two transports of OTLP: HTTP with protobuf, and unary gRPC calls. */
import { X509Certificate } from 'node:crypto'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { PeerCertificate } from 'node:tls'
import type { ServiceError } from '@grpc/grpc-js'
import type {
  UpstreamAddress,
  UpstreamTls,
} from '../../../../engines/http/sockets/upstream-address.ts'
import { bufferOf } from '../../../../ground/base/buffers.ts'
import { Agent as HttpAgent, request as httpRequest } from '../../../../ground/base/node-http.ts'
import { readPartialSuccess } from './values.ts'

/** The current address of a collector. */
export interface CollectorAddress {
  readonly address: UpstreamAddress
  /** Value of the Host header. */
  readonly authority: string
}

export interface SendResult {
  /** `again` means that the same items should be sent again later. */
  readonly result: 'sent' | 'again' | 'refused'
  /** Number of items that the collector has rejected although it answered with success. */
  readonly rejected?: number
  /** How long the collector wants no further requests. */
  readonly afterMs?: number
}

/** Maximum size of the answer of a collector that is read. */
export const maxAnswerBytes = 65_536

export interface Sender {
  send(to: CollectorAddress, body: Uint8Array): Promise<SendResult>
  close(): void
}

const timeoutMs = 10_000
/** HTTP statuses after which the same data may be sent again. Other failures must not be retried (OTLP/HTTP). */
export const retryableStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504])

export class HttpSender implements Sender {
  readonly #path: string
  readonly #agents = new Map<UpstreamTls | undefined, HttpAgent>()

  constructor(path: string) {
    this.#path = path
  }

  send({ address, authority }: CollectorAddress, body: Uint8Array): Promise<SendResult> {
    const { host, port, tls } = address
    const options: RequestOptions = {
      host,
      port,
      method: 'POST',
      path: this.#path,
      agent: this.#agent(tls),
      timeout: timeoutMs,
      headers: {
        host: authority,
        'content-type': 'application/x-protobuf',
        'content-length': body.length,
      },
    }
    return new Promise((resolve) => {
      const request = tls === undefined ? httpRequest(options) : httpsRequest(options)
      request.once('error', () => resolve({ result: 'again' }))
      request.once('timeout', () => request.destroy())
      request.once('response', (response) => {
        const pieces: Buffer[] = []
        let bytes = 0
        response.on('data', (piece: Buffer) => {
          bytes += piece.length
          if (bytes <= maxAnswerBytes) pieces.push(piece)
        })
        response.once('error', () => resolve({ result: 'again' }))
        response.once('end', () => resolve(resultOf(response, Buffer.concat(pieces))))
      })
      request.end(body)
    })
  }

  #agent(tls: UpstreamTls | undefined): HttpAgent {
    let agent = this.#agents.get(tls)
    if (agent === undefined) {
      this.close()
      agent =
        tls === undefined
          ? new HttpAgent({ keepAlive: true, maxSockets: 1 })
          : new HttpsAgent({ keepAlive: true, maxSockets: 1, ...tlsOptions(tls) })
      this.#agents.set(tls, agent)
    }
    return agent
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy()
    this.#agents.clear()
  }
}

function resultOf({ statusCode = 0, headers }: IncomingMessage, body: Buffer): SendResult {
  if (statusCode >= 200 && statusCode < 300) {
    return { result: 'sent', rejected: readPartialSuccess(body).rejected }
  }
  return retryableStatuses.has(statusCode)
    ? { result: 'again', afterMs: retryAfterMs(headers['retry-after']) }
    : { result: 'refused' }
}

/** Reads `retry-after` in seconds; 0 if it is absent or a date. */
export const retryAfterMs = (text = ''): number =>
  /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : 0

/** Converts the TLS settings of a backend's policies to options of Node. */
function tlsOptions(tls: UpstreamTls) {
  return {
    secureContext: tls.context,
    servername: tls.serverName,
    rejectUnauthorized: tls.requiresTrust,
    checkServerIdentity: (_: string, certificate: PeerCertificate): Error | undefined => {
      const problem = tls.checkName(new X509Certificate(certificate.raw))
      return problem === undefined ? undefined : new Error(problem)
    },
  }
}

type Grpc = typeof import('@grpc/grpc-js')
type GrpcClient = InstanceType<Grpc['Client']>

/**
 * gRPC statuses after which the same data may be sent again: CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE,
 * UNAVAILABLE, DATA_LOSS.
 */
const retryableCodes: ReadonlySet<number> = new Set([1, 4, 10, 11, 14, 15])
const unavailable = 14
const resourceExhausted = 8

/** Whether the same data may be sent again. RESOURCE_EXHAUSTED is final unless the collector says when to retry. */
export function isRetryable({ code = unavailable, metadata }: Partial<ServiceError>): boolean {
  if (code !== resourceExhausted) return retryableCodes.has(code)
  const details = metadata?.get('grpc-status-details-bin') ?? []
  return details.some((one) => one.includes('google.rpc.RetryInfo'))
}

const identity = (bytes: Buffer): Buffer => bytes

export class GrpcSender implements Sender {
  readonly #method: string
  #client: { readonly target: string; readonly client: GrpcClient } | undefined

  constructor(method: string) {
    this.#method = method
  }

  async send(to: CollectorAddress, body: Uint8Array): Promise<SendResult> {
    const grpc = await import('@grpc/grpc-js')
    const client = this.#clientOf(grpc, to)
    const bytes = bufferOf(body)
    return new Promise((resolve) => {
      const options = { deadline: Date.now() + timeoutMs }
      const done = (error: Partial<ServiceError> | null, answer?: Buffer) => {
        if (error === null) {
          resolve({
            result: 'sent',
            rejected: readPartialSuccess(answer ?? bytes.subarray(0, 0)).rejected,
          })
        } else resolve({ result: isRetryable(error) ? 'again' : 'refused' })
      }
      client.makeUnaryRequest(
        this.#method,
        identity,
        identity,
        bytes,
        new grpc.Metadata(),
        options,
        done,
      )
    })
  }

  #clientOf(grpc: Grpc, to: CollectorAddress): GrpcClient {
    const { pool } = to.address
    if (this.#client?.target === pool) return this.#client.client
    this.close()
    const client = openGrpcClient(grpc, to)
    this.#client = { target: pool, client }
    return client
  }

  close(): void {
    this.#client?.client.close()
    this.#client = undefined
  }
}

/** Opens a gRPC client for one address, with the TLS settings of its policies. */
function openGrpcClient(grpc: Grpc, { address, authority }: CollectorAddress): GrpcClient {
  const { tls } = address
  const credentials =
    tls === undefined
      ? grpc.credentials.createInsecure()
      : grpc.credentials.createFromSecureContext(tls.context, tlsOptions(tls))
  return new grpc.Client(grpcTarget(address), credentials, {
    'grpc.default_authority': authority,
    'grpc.enable_retries': 0,
    'grpc.use_local_subchannel_pool': 1,
    ...(tls !== undefined &&
      tls.serverName !== '' && {
        'grpc.ssl_target_name_override': tls.serverName,
      }),
  })
}

function grpcTarget({ host, port }: UpstreamAddress): string {
  if (host.includes(':')) return `ipv6:[${host}]:${port}`
  return /^[0-9.]+$/.test(host) ? `ipv4:${host}:${port}` : `dns:///${host}:${port}`
}
