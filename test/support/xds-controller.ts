/** A bare controller: sends a proxy each message of the test and records the answers. */
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js'
import {
  assembleResponse,
  type DeltaRequest,
  decodeRequest,
  deltaMethodPath,
  encodePiece,
} from '../../src/control/wire/discovery.ts'
import type { ResourceKey } from '../../src/ground/model/resources.ts'
import { waitFor } from './wait-for.ts'

/** One resource: key, version, and the bytes of its `Resource` message. */
export type BareResource = readonly [key: ResourceKey, version: string, body: Uint8Array]

export class BareController {
  readonly requests: DeltaRequest[] = []
  readonly #server = new Server()
  #call: ServerDuplexStream<Uint8Array, Uint8Array> | undefined
  #nonce = 0
  address = ''

  async start(): Promise<this> {
    const method = {
      path: deltaMethodPath,
      requestStream: true,
      responseStream: true,
      requestSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
      requestDeserialize: (bytes: Buffer): Uint8Array => bytes,
      responseSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
      responseDeserialize: (bytes: Buffer): Uint8Array => bytes,
    }
    const open = (call: ServerDuplexStream<Uint8Array, Uint8Array>) => {
      this.#call = call
      call.on('data', (bytes: Uint8Array) => this.requests.push(decodeRequest(bytes)))
      call.on('error', () => undefined)
      call.on('end', () => call.end())
    }
    this.#server.addService({ delta: method }, { delta: open })
    const port = await new Promise<number>((resolve, reject) => {
      const credentials = ServerCredentials.createInsecure()
      this.#server.bindAsync('127.0.0.1:0', credentials, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      )
    })
    this.address = `127.0.0.1:${port}`
    return this
  }

  /** Sends a change set once a proxy is there; resolves with its answer. */
  async send(
    upserted: readonly BareResource[],
    removed: readonly ResourceKey[] = [],
  ): Promise<DeltaRequest> {
    await waitFor('a proxy', () => this.requests.length > 0)
    const nonce = String(++this.#nonce)
    const pieces = upserted.map(([key, version, body]) => encodePiece(key, version, body))
    const parts = { position: this.#nonce, nonce, pieces, removed, isPartial: false }
    this.#call?.write(assembleResponse(parts))
    return this.answer((request) => request.nonce === nonce)
  }

  /** The latest request that satisfies. */
  answer(isWanted: (request: DeltaRequest) => boolean): Promise<DeltaRequest> {
    return waitFor('an answer of the proxy', () => this.requests.findLast(isWanted))
  }

  close(): void {
    this.#server.forceShutdown()
  }
}
