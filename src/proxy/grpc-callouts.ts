/** Unary gRPC calls of policies to backends, with the endpoints and policies that those have. */
import { GatewayError } from '../errors.ts'
import type { GrpcCallout } from '../exchange/exchange.ts'
import { backendLevels } from '../policies/merge.ts'
import { streamAccess } from './config/backend-access.ts'
import { nameTarget } from './config/rules.ts'
import type { PhaseContext } from './phases.ts'
import { type GrpcClient, openGrpcClient } from './telemetry/otlp/senders.ts'
import type { Destination } from './upstream/destination.ts'
import { resolveDestination } from './upstream/resolve.ts'

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
    const destination = await this.#resolve(target)
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

  #resolve(target: GrpcCallout['target']): Destination | Promise<Destination> {
    const { policies } = this.#context.config
    const named = nameTarget(target)
    const kind = target.type === 'service' ? 'Service' : 'GatewayBackend'
    const backend = { kind, namespace: target.namespace, name: target.name }
    // No route leads there, so only what targets the backend itself holds.
    const place: Parameters<typeof resolveDestination>[1] = {
      backend: (_named, part) => {
        const levels = backendLevels([], { backend, sections: part().sections })
        return streamAccess(policies.merge('backend', 'PostRouting', levels))
      },
    }
    const nobody = { authority: '', scheme: 'http' as const }
    return resolveDestination(this.#context, place, named, nobody)
  }
}
