/** A bare client of the configuration stream: sends each message of a proxy by hand. */
import { Client, type ClientDuplexStream, credentials, Metadata } from '@grpc/grpc-js'
import {
  type DeltaRequest,
  type DeltaResponse,
  decodeResponse,
  deltaMethodPath,
  encodeRequest,
  type ProxyNode,
  resourceTypeUrl,
} from '../../src/control/wire/discovery.ts'
import { waitFor } from './wait-for.ts'

export interface BareClientOptions {
  readonly address: string
  readonly token?: string
  /** PEM of the authority; absent: plaintext. */
  readonly ca?: Buffer
}

export const edgeNode: ProxyNode = {
  name: 'edge-1',
  gateway: { namespace: 'ns', name: 'edge' },
  addresses: ['10.0.0.1'],
  version: '1',
}

export class BareClient {
  readonly responses: DeltaResponse[] = []
  /** Code and text with which the stream ended. */
  ended: { readonly code: number; readonly details: string } | undefined
  readonly #client: Client
  readonly #stream: ClientDuplexStream<Uint8Array, Uint8Array>

  constructor({ address, token, ca }: BareClientOptions) {
    const secure = ca === undefined ? credentials.createInsecure() : credentials.createSsl(ca)
    this.#client = new Client(address, secure, {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.ssl_target_name_override': 'localhost',
    })
    const metadata = new Metadata()
    if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)
    this.#stream = this.#client.makeBidiStreamRequest(
      deltaMethodPath,
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes: Buffer): Uint8Array => bytes,
      metadata,
    )
    this.#stream.on('data', (bytes: Uint8Array) => this.responses.push(decodeResponse(bytes)))
    this.#stream.on('error', () => undefined)
    this.#stream.on('status', ({ code, details }) => {
      this.ended = { code, details }
    })
  }

  /** `more`: bytes behind the message, such as fields that the server does not know. */
  say(request: Partial<DeltaRequest>, more: Uint8Array = new Uint8Array()): this {
    const all = { typeUrl: resourceTypeUrl, versions: new Map(), nonce: '', ...request }
    this.#stream.write(Buffer.concat([encodeRequest(all), more]))
    return this
  }

  hello(node: ProxyNode = edgeNode, versions: Readonly<Record<string, string>> = {}): this {
    return this.say({ node, versions: new Map(Object.entries(versions)) })
  }

  /** The next unread response. */
  async next(): Promise<DeltaResponse> {
    return waitFor('a response', () => {
      if (this.ended !== undefined) throw new Error(`the stream ended: ${this.ended.details}`)
      return this.responses.shift()
    })
  }

  /** Answers that everything of a response is in force. */
  accept({ nonce }: DeltaResponse): this {
    return this.say({ nonce })
  }

  end(): Promise<{ readonly code: number; readonly details: string }> {
    return waitFor('the end of the stream', () => this.ended)
  }

  /** Stops reading from the server. */
  pause(): void {
    this.#stream.pause()
  }

  close(): void {
    this.#stream.cancel()
    this.#client.close()
  }
}
