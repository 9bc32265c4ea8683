/** Unary gRPC calls of policies to backends, with the endpoints and policies that those have. */
import { GatewayError } from '../errors.ts'
import type { GrpcCallout } from '../exchange/exchange.ts'
import { resolveCallout } from './callout-destination.ts'
import type { PhaseContext } from './phases.ts'
import { type GrpcClient, openGrpcClient } from './telemetry/otlp/senders.ts'

/** Clients that are kept open, one for each endpoint; the oldest goes first. */
const maxClients = 64

const identity = (bytes: Buffer): Buffer => bytes

export class GrpcCallouts {
  readonly #context: PhaseContext
  readonly #clients = new Map<string, GrpcClient>()

  constructor(context: PhaseContext) {
    this.#context = context
  }

  /** Rejects with `callout_failed`, or with what keeps the backend from being reached. */
  async call({ target, path, message, timeoutMs }: GrpcCallout): Promise<Uint8Array> {
    const destination = await resolveCallout(this.#context, target)
    const grpc = await import('@grpc/grpc-js')
    const { pool } = destination.address
    let client = this.#clients.get(pool)
    if (client === undefined) {
      client = openGrpcClient(grpc, destination)
      this.#keep(pool, client)
    }
    const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
    const limitMs = destination.settings.requestTimeoutMs ?? timeoutMs
    const options = { deadline: Date.now() + limitMs }
    const metadata = new grpc.Metadata()
    const used = client
    return new Promise((resolve, reject) => {
      used.makeUnaryRequest(path, identity, identity, bytes, metadata, options, (error, answer) => {
        if (error === null && answer !== undefined) resolve(answer)
        else reject(new GatewayError('callout_failed', error?.message ?? 'no answer'))
      })
    })
  }

  #keep(pool: string, client: GrpcClient): void {
    const [oldest] = this.#clients.keys()
    if (this.#clients.size >= maxClients && oldest !== undefined) {
      this.#clients.get(oldest)?.close()
      this.#clients.delete(oldest)
    }
    this.#clients.set(pool, client)
  }
}
