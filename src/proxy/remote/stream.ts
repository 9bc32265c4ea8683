/**
 * The connection to a controller: one stream at a time, opened again whenever it ends. Parts of a
 * change set are gathered here, so that whoever receives sees whole change sets only.
 *
 * ```
 *   waiting ── time is up ──► opening ── first part ──► open
 *      ▲                         │                       │
 *      └──── refused, no answer ─┴──── ended, broken ────┘
 * ```
 */
import { readFileSync } from 'node:fs'
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type StatusObject,
  status,
} from '@grpc/grpc-js'
import type { ResourceKey } from '../../model/resources.ts'
import {
  type DeltaRequest,
  type DeltaResponse,
  decodeResponse,
  deltaMethodPath,
  encodeRequest,
  type ProxyNode,
  type ReceivedResource,
  type Refusal,
  resourceTypeUrl,
} from '../../wire/discovery.ts'
import { Endpoints } from './endpoints.ts'

/** A whole change set. */
export interface ReceivedChange {
  readonly nonce: string
  /** Position of the controller's log; -1 where it says none. */
  readonly position: number
  readonly upserted: readonly ReceivedResource[]
  readonly removed: readonly ResourceKey[]
}

export interface StreamOptions {
  /** Controllers, `host:port`; tried in turn. */
  readonly addresses: readonly string[]
  readonly node: ProxyNode
  /** File with the bearer token; read for each stream. */
  readonly tokenFile?: string
  /** File with the authorities (PEM) that controllers' certificates must come from; absent: plaintext. */
  readonly caFile?: string
  /** What the proxy has, told to each controller. */
  versions(): ReadonlyMap<ResourceKey, string>
  onChange(change: ReceivedChange): void
  onOpen(address: string): void
  /** `wasOpen`: had the controller answered on this stream? */
  onEnd(address: string, why: string, wasOpen: boolean): void
}

type Duplex = ClientDuplexStream<Uint8Array, Uint8Array>

/** @throws where there is none: without it nobody is believed, and nothing would say why */
function readToken(file: string): string {
  const token = readFileSync(file, 'utf8').trim()
  if (token === '') throw new Error(`${file} holds no token`)
  return token
}

/** @throws where there are none, which would look like a certificate that nobody vouches for */
function readAuthorities(file: string): Buffer {
  const authorities = readFileSync(file)
  if (!authorities.includes('-----BEGIN ')) throw new Error(`${file} holds no certificate`)
  return authorities
}

/** How long a controller may take to answer the first request. */
const firstAnswerMs = 15_000

const channelOptions = {
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  // Tries are paced here, once; the library's own pace would come on top.
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.use_local_subchannel_pool': 1,
} as const

const raw = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const same = (bytes: Buffer): Uint8Array => bytes

export class ControllerStream {
  readonly #options: StreamOptions
  readonly #endpoints: Endpoints
  #client: Client | undefined
  #stream: Duplex | undefined
  #retry: NodeJS.Timeout | undefined
  #patience: NodeJS.Timeout | undefined
  #isOpen = false
  #isClosed = false
  #parts: DeltaResponse[] = []

  constructor(options: StreamOptions) {
    this.#options = options
    this.#endpoints = new Endpoints(options.addresses)
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Begins to connect; never ends by itself. */
  start(): void {
    if (this.#isClosed) return
    const address = this.#endpoints.current
    try {
      this.#open(address)
    } catch (error) {
      // Files of token or authority that cannot be read now may be there at the next try.
      this.#ended(address, error instanceof Error ? error.message : String(error))
    }
  }

  #open(address: string): void {
    const { tokenFile, node, versions } = this.#options
    const metadata = new Metadata()
    if (tokenFile !== undefined) metadata.set('authorization', `Bearer ${readToken(tokenFile)}`)
    const client = new Client(address, this.#credentials(), channelOptions)
    this.#client = client
    const stream: Duplex = client.makeBidiStreamRequest(deltaMethodPath, raw, same, metadata)
    this.#stream = stream
    this.#parts = []
    const isMine = () => this.#stream === stream
    stream.on('data', (bytes: Uint8Array) => {
      if (isMine()) this.#receive(bytes)
    })
    stream.on('error', () => undefined)
    stream.on('status', ({ code, details }: StatusObject) => {
      if (isMine()) this.#ended(address, `${status[code]}: ${details}`)
    })
    this.#patience = setTimeout(() => stream.cancel(), firstAnswerMs)
    this.#say({ node, versions: versions() })
  }

  #credentials(): ChannelCredentials {
    const { caFile } = this.#options
    if (caFile === undefined) return credentials.createInsecure()
    return credentials.createSsl(readAuthorities(caFile))
  }

  #say(request: Partial<DeltaRequest>): void {
    const whole = { typeUrl: resourceTypeUrl, versions: new Map(), nonce: '', ...request }
    this.#stream?.write(encodeRequest(whole))
  }

  /** Answers a change set, or says again what is in force of the last one. */
  answer(nonce: string, rejected?: Refusal): void {
    if (this.#isOpen) this.#say({ nonce, ...(rejected && { rejected }) })
  }

  #receive(bytes: Uint8Array): void {
    let part: DeltaResponse
    try {
      part = decodeResponse(bytes)
    } catch (error) {
      this.#ended(this.#endpoints.current, `a response cannot be read: ${String(error)}`)
      return
    }
    if (!this.#isOpen) this.#opened()
    this.#parts.push(part)
    if (part.isPartial) {
      this.#say({ nonce: part.nonce })
      return
    }
    const parts = this.#parts
    this.#parts = []
    const position = Number(part.position)
    this.#options.onChange({
      nonce: part.nonce,
      position: Number.isSafeInteger(position) && part.position !== '' ? position : -1,
      upserted: parts.flatMap(({ upserted }) => upserted),
      removed: parts.flatMap(({ removed }) => removed),
    })
  }

  #opened(): void {
    this.#isOpen = true
    clearTimeout(this.#patience)
    this.#endpoints.worked()
    this.#options.onOpen(this.#endpoints.current)
  }

  #ended(address: string, why: string): void {
    const wasOpen = this.#isOpen
    this.#drop()
    if (this.#isClosed) return
    this.#options.onEnd(address, why, wasOpen)
    this.#retry = setTimeout(() => this.start(), this.#endpoints.failed())
  }

  #drop(): void {
    clearTimeout(this.#patience)
    clearTimeout(this.#retry)
    this.#isOpen = false
    this.#parts = []
    const [stream, client] = [this.#stream, this.#client]
    this.#stream = undefined
    this.#client = undefined
    stream?.cancel()
    client?.close()
  }

  /** Ends the stream in good order and tries no more. */
  close(): void {
    this.#isClosed = true
    this.#stream?.end()
    this.#drop()
  }
}
