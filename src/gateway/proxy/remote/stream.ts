/**
 * The connection to a controller: one stream at a time, opened again whenever it ends. Joins the
 * parts of a change set, so that only whole change sets are passed on.
 *
 * ```
 *   waiting ── time is up ──► opening ── first part ──► open
 *      ▲                         │                       │
 *      └──── refused, no answer ─┴──── ended, broken ────┘
 * ```
 */
import { readFileSync } from 'node:fs'
import {
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type StatusObject,
  status,
} from '@grpc/grpc-js'
import {
  type ChangeSetRefusal,
  type DeltaRequest,
  type DeltaResponse,
  decodeResponse,
  deltaMethodPath,
  encodeEndedRequest,
  encodeLeavingRequest,
  encodeLedgerRequest,
  encodeListRequest,
  encodeRecordRequest,
  encodeRequest,
  encodeSeriesRequest,
  type ProxyNode,
  type ReceivedResource,
  resourceTypeUrl,
} from '../../../control/wire/discovery.ts'
import type { AddressedUpdate } from '../../../control/wire/ledger-messages.ts'
import { bufferOf } from '../../../ground/base/buffers.ts'
import type { HolderReport } from '../../../ground/model/budgets.ts'
import type { EndedEntry, EndedReport } from '../../../ground/model/ended-sessions.ts'
import type { ListReport } from '../../../ground/model/mcp-lists.ts'
import type { RecordReport } from '../../../ground/model/record-report.ts'
import type { ResourceKey } from '../../../ground/model/resources.ts'
import type { SeriesReport, StoredSeries } from '../../../ground/model/series.ts'

export interface ReceivedChange {
  readonly nonce: string
  /** Position in the controller's log; -1 if the controller sends none. */
  readonly position: number
  readonly upserted: readonly ReceivedResource[]
  readonly removed: readonly ResourceKey[]
}

export interface StreamOptions {
  /** Addresses of controllers as `host:port`, which are tried in turn. */
  readonly addresses: readonly string[]
  readonly node: ProxyNode
  /** File with the bearer token. It is read again for each stream. */
  readonly tokenFile?: string
  /** File with the certificate authorities (PEM) for controllers. If omitted, connections are plaintext. */
  readonly caFile?: string
  /** Opens a stream to a controller. If omitted, it uses gRPC. */
  readonly connect?: (address: string) => Connection
  /** Returns the versions that the proxy has. They are sent at the start of each stream. */
  versions(): ReadonlyMap<ResourceKey, string>
  /** Position of the last change set that was received; undefined if it is unknown. It is sent likewise. */
  position(): number | undefined
  onChange(change: ReceivedChange): void
  /** Called with every update of the ledger of budgets. */
  onLedger?(update: AddressedUpdate): void
  /** Called with what the controller has of the time series. */
  onSeries?(stored: StoredSeries): void
  /** Called with sessions and tokens that are refused. */
  onEnded?(entries: readonly EndedEntry[]): void
  onOpen(address: string): void
  /** Called when a stream has ended. `wasOpen` is true if the controller had responded on it. */
  onEnd(address: string, why: string, wasOpen: boolean): void
}

const firstDelayMs = 200
const maxDelayMs = 15_000

/**
 * Addresses of controllers, which are tried in turn. The delay between rounds is partly random and doubles
 * up to 15 s.
 */
class ControllerAddresses {
  readonly #addresses: readonly string[]
  #next = 0
  #failures = 0

  /** `addresses` has at least one `host:port`. */
  constructor(addresses: readonly string[]) {
    this.#addresses = addresses
  }

  get current(): string {
    return this.#addresses[this.#next % this.#addresses.length] ?? ''
  }

  /** Resets the delay. Called when a stream of the current address has ended that worked. */
  worked(): void {
    this.#failures = 0
  }

  /** Switches to the next address. Returns the milliseconds to wait before it is tried. */
  failed(): number {
    this.#next++
    const round = Math.floor(this.#failures / this.#addresses.length)
    const isRoundOver = ++this.#failures % this.#addresses.length === 0
    if (!isRoundOver) return 0
    const limit = Math.min(firstDelayMs * 2 ** round, maxDelayMs)
    return limit / 2 + (limit / 2) * Math.random()
  }
}

/** A stream to a controller, and the connection that it uses. */
interface Connection {
  readonly stream: Pick<
    ClientDuplexStream<Uint8Array, Uint8Array>,
    'on' | 'write' | 'cancel' | 'end'
  >
  close(): void
}

/** Reads the token. @throws Error if there is none, because the controller would not say why it refuses */
function readToken(file: string): string {
  const token = readFileSync(file, 'utf8').trim()
  if (token === '') throw new Error(`${file} contains no token`)
  return token
}

/** Reads the authorities. @throws Error if there are none, because connections would fail without a reason */
function readAuthorities(file: string): Buffer {
  const authorities = readFileSync(file)
  if (!authorities.includes('-----BEGIN ')) throw new Error(`${file} contains no certificate`)
  return authorities
}

/** Maximum time for a controller to respond to the first request. */
const firstResponseTimeoutMs = 15_000

const channelOptions = {
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  // The delay of the library is short, because this class adds its own delay.
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.use_local_subchannel_pool': 1,
} as const

const same = (bytes: Buffer): Uint8Array => bytes

type Files = Pick<StreamOptions, 'tokenFile' | 'caFile'>

/** @throws Error if a file cannot be used */
const connectOverGrpc =
  ({ tokenFile, caFile }: Files) =>
  (address: string): Connection => {
    const metadata = new Metadata()
    if (tokenFile !== undefined) metadata.set('authorization', `Bearer ${readToken(tokenFile)}`)
    const security =
      caFile === undefined
        ? credentials.createInsecure()
        : credentials.createSsl(readAuthorities(caFile))
    const client = new Client(address, security, channelOptions)
    const stream = client.makeBidiStreamRequest(deltaMethodPath, bufferOf, same, metadata)
    return { stream, close: () => client.close() }
  }

export class ControllerStream {
  readonly #options: StreamOptions
  readonly #addresses: ControllerAddresses
  #connection: Connection | undefined
  #retry: NodeJS.Timeout | undefined
  #patience: NodeJS.Timeout | undefined
  #isOpen = false
  #isClosed = false
  #parts: DeltaResponse[] = []

  constructor(options: StreamOptions) {
    this.#options = options
    this.#addresses = new ControllerAddresses(options.addresses)
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Connects, and keeps reconnecting until `close`. */
  start(): void {
    if (this.#isClosed) return
    const address = this.#addresses.current
    try {
      this.#open(address)
    } catch (error) {
      // Files that cannot be read now may exist at the next attempt.
      this.#ended(address, error instanceof Error ? error.message : String(error))
    }
  }

  #open(address: string): void {
    const { node, versions, position, connect = connectOverGrpc(this.#options) } = this.#options
    const connection = connect(address)
    this.#connection = connection
    const { stream } = connection
    this.#parts = []
    const isMine = () => this.#connection === connection
    stream.on('data', (bytes: Uint8Array) => {
      if (isMine()) this.#receive(bytes)
    })
    stream.on('error', () => undefined)
    stream.on('status', ({ code, details }: StatusObject) => {
      if (!isMine()) return
      // Another proxy of this name took the stream over. Without a longer delay, both would do so in turn.
      if (this.#isOpen && code !== status.ABORTED) this.#addresses.worked()
      this.#ended(address, `${status[code]}: ${details}`)
    })
    this.#patience = setTimeout(() => stream.cancel(), firstResponseTimeoutMs)
    const known = position()
    this.#send({ node, versions: versions(), ...(known !== undefined && { position: known }) })
  }

  #send(request: Partial<DeltaRequest>): void {
    const whole = { typeUrl: resourceTypeUrl, versions: new Map(), nonce: '', ...request }
    this.#connection?.stream.write(encodeRequest(whole))
  }

  /** Acknowledges or rejects a change set, or changes what was said about the last one. */
  acknowledge(nonce: string, rejected?: ChangeSetRefusal): void {
    if (this.#isOpen) this.#send({ nonce, ...(rejected && { rejected }) })
  }

  /** Sends a report of a holder of budgets, if a controller is connected. */
  report(report: HolderReport): void {
    if (this.#isOpen) this.#connection?.stream.write(encodeLedgerRequest(report))
  }

  /** Sends a report of what an MCP server lists. Returns false if no controller is connected. */
  reportList(report: ListReport): boolean {
    if (!this.#isOpen || this.#connection === undefined) return false
    this.#connection.stream.write(encodeListRequest(report))
    return true
  }

  /** Sends a report of sessions that have ended. Returns false if no controller is connected. */
  reportEnded(report: EndedReport): boolean {
    if (!this.#isOpen || this.#connection === undefined) return false
    this.#connection.stream.write(encodeEndedRequest(report))
    return true
  }

  /** Sends decision records. Returns false if no controller is connected. */
  reportRecords(report: RecordReport): boolean {
    if (!this.#isOpen || this.#connection === undefined) return false
    this.#connection.stream.write(encodeRecordRequest(report))
    return true
  }

  reportSeries(report: SeriesReport): void {
    if (this.#isOpen) this.#connection?.stream.write(encodeSeriesRequest(report))
  }

  /** Says that the proxy is shutting down, if a controller is connected. */
  sendLeaving(): void {
    if (this.#isOpen) this.#connection?.stream.write(encodeLeavingRequest())
  }

  #receive(bytes: Uint8Array): void {
    let part: DeltaResponse
    try {
      part = decodeResponse(bytes)
    } catch (error) {
      this.#ended(this.#addresses.current, `a response cannot be read: ${String(error)}`)
      return
    }
    if (!this.#isOpen) this.#opened()
    if (part.ledger !== undefined) {
      this.#options.onLedger?.(part.ledger)
      return
    }
    if (part.seriesStored !== undefined) {
      this.#options.onSeries?.(part.seriesStored)
      return
    }
    if (part.ended !== undefined) {
      this.#options.onEnded?.(part.ended)
      return
    }
    this.#parts.push(part)
    if (part.isPartial) {
      this.#send({ nonce: part.nonce })
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
    this.#options.onOpen(this.#addresses.current)
  }

  #ended(address: string, why: string): void {
    const wasOpen = this.#isOpen
    this.#drop()
    if (this.#isClosed) return
    this.#options.onEnd(address, why, wasOpen)
    this.#retry = setTimeout(() => this.start(), this.#addresses.failed())
  }

  #drop(): void {
    clearTimeout(this.#patience)
    clearTimeout(this.#retry)
    this.#isOpen = false
    this.#parts = []
    const connection = this.#connection
    this.#connection = undefined
    connection?.stream.cancel()
    connection?.close()
  }

  /** Ends the stream and stops reconnecting. */
  close(): void {
    this.#isClosed = true
    this.#connection?.stream.end()
    this.#drop()
  }
}
