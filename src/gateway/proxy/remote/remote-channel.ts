/**
 * Passes the configuration of a remote controller to the workers, and their acknowledgements back. Change
 * sets are numbered by this process, because the controller's log positions start again after the
 * loss of its log and differ between replicas with logs of their own.
 *
 * ```
 *   disk ──last good──┐
 *   controller ───────┴──► received state ──change sets──► workers
 *        ▲                      │   ▲                         │
 *        └── applied, rejected ─┘   └──── acks, rejections ───┘
 * ```
 */

import type { ConfigChannel, ConfigUpdate, Rejection } from '../../../control/wire/channel.ts'
import type { ChangeSetRefusal } from '../../../control/wire/discovery.ts'
import { assembleSharedDelta, type EncodedResource } from '../../../control/wire/encode.ts'
import type { ConnectLedger, HolderReport, HolderUpdate } from '../../../ground/model/budgets.ts'
import {
  type EndedEntry,
  EndedList,
  type EndedReport,
} from '../../../ground/model/ended-sessions.ts'
import type { ReportList } from '../../../ground/model/mcp-lists.ts'
import type { ResourceKey } from '../../../ground/model/resources.ts'
import type { ConnectSeries, StoredSeries } from '../../../ground/model/series.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import type { LastGood } from './last-good.ts'
import { ReceivedState } from './received-state.ts'
import { RecordUplink } from './record-uplink.ts'
import { ReportedLists } from './reported-lists.ts'
import { ControllerStream, type ReceivedChange, type StreamOptions } from './stream.ts'

type NoticeLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error'

interface RemoteChannelOptions
  extends Pick<StreamOptions, 'addresses' | 'node' | 'tokenFile' | 'caFile' | 'connect'> {
  /** If omitted, nothing is stored on disk. */
  readonly lastGood?: Pick<LastGood, 'load' | 'save'>
  /** Called with messages for the operational log. */
  readonly onNotice: (severity: NoticeLevel, text: string) => void
}

/** A change set that has not been acknowledged yet, because not all workers have applied it. */
interface PendingChange {
  readonly nonce: string
  readonly position: number
  /** Number of the connection that it came from. It must be acknowledged on the same one. */
  readonly connection: number
}

interface RemoteHolder {
  readonly receive: (update: HolderUpdate) => void
  last: HolderReport | undefined
}

/** A report without buckets, which the controller answers with what it has. */
const askForStored = { periodMs: 0, frames: new Uint8Array() }

/** Maximum number of reports of ended sessions that wait for a controller. */
const maxWaitingEnded = 10_000
/** Minimum delay before a write to disk. */
const firstSaveMs = 100
/** Minimum time between two writes to disk. */
const nextSaveMs = 2_000

export class RemoteChannel implements ConfigChannel {
  readonly #options: RemoteChannelOptions
  readonly #state = new ReceivedState()
  readonly #stream: ControllerStream
  readonly #subscribers = new Set<(update: ConfigUpdate) => void>()
  readonly #rejected = new Map<ResourceKey, Rejection>()
  readonly #pending = new Map<number, PendingChange>()
  /** Sequence of the last change set; 0 before the first one. */
  #sequence = 0
  #connection = 0
  #isLeaving = false
  /** Holders of budgets, with their last reports. */
  readonly #holders = new Map<string, RemoteHolder>()
  readonly #lists = new ReportedLists()
  readonly #records: RecordUplink
  readonly #endedList = new EndedList()
  readonly #endedSubscribers = new Set<(entries: readonly EndedEntry[]) => void>()
  /** Reports of ended sessions that wait for a controller. */
  readonly #waitingEnded: EndedReport[] = []
  /** Receives what the controller has of the time series; undefined if these are not reported. */
  #series: ((stored: StoredSeries) => void) | undefined
  /** Number of the connection whose first change set was checked. */
  #checkedConnection = 0
  #connects = 0
  #failures = 0
  /** Position in the controller's log up to which changes are in force; -1 before the first one. */
  #position = -1
  /** Position of the last change set that was received; 0 if it is unknown. */
  #receivedPosition = 0
  #lastNonce: string | undefined
  #isAckDue = false
  /** The last failure that was reported for each address. Cleared by every connection. */
  readonly #lastFailures = new Map<string, string>()
  #saveTimer: NodeJS.Timeout | undefined
  #saving: Promise<void> = Promise.resolve()
  #savedAt = Number.NEGATIVE_INFINITY
  #saves = 0
  #saveFailures = 0

  constructor(options: RemoteChannelOptions) {
    this.#options = options
    this.#stream = new ControllerStream({
      ...options,
      node: { ...options.node, takesEnded: true },
      versions: () => this.#state.versions(),
      position: () => this.#receivedPosition || undefined,
      onChange: (change) => this.#receive(change),
      onLedger: ({ holder, ...update }) => this.#holders.get(holder)?.receive(update),
      onEnded: (entries) => this.#receiveEnded(entries),
      onSeries: (stored) => this.#series?.(stored),
      onOpen: (address) => this.#opened(address),
      onEnd: (address, why, wasOpen) => this.#ended(address, why, wasOpen),
    })
    this.#records = new RecordUplink((report) => this.#stream.reportRecords(report))
  }

  /** Keeps the newest decision records, and sends them to every controller that is connected. */
  readonly reportRecords = (block: Uint8Array, isSample: boolean): void =>
    this.#records.add(block, isSample)

  /** A number that changes with all activity. */
  get activity(): number {
    return this.#sequence + this.#saves + this.#connects
  }

  metrics(): MetricsSnapshot {
    const one = (value: number) => [{ labels: [], values: [value] }]
    return {
      controller_connected: one(this.#stream.isOpen ? 1 : 0),
      controller_connections_total: one(this.#connects),
      controller_connection_failures_total: one(this.#failures),
      controller_position: one(this.#position),
      last_good_saves_total: one(this.#saves),
      last_good_save_failures_total: one(this.#saveFailures),
    }
  }

  /** Publishes the configuration on disk, if there is any, and connects to a controller. */
  start(): void {
    const { lastGood, onNotice } = this.#options
    const kept = lastGood?.load((text) => onNotice('warn', text))
    if (kept !== undefined) {
      this.#state.restore(kept.inForce, kept.refused)
      this.#sequence = 1
      onNotice('info', `serving the configuration of ${kept.saved} until a controller answers`)
    }
    this.#stream.start()
  }

  // Controller ------------------------------------------------------------------------------------

  #opened(address: string): void {
    this.#connection++
    this.#connects++
    this.#lastNonce = undefined
    this.#lastFailures.clear()
    this.#options.onNotice('info', `connected to the controller at ${address}`)
    // Another replica does not know what the last one has not counted.
    for (const { last } of this.#holders.values()) if (last !== undefined) this.#stream.report(last)
    for (const report of this.#lists.takeWaiting()) this.#stream.reportList(report)
    for (const report of this.#waitingEnded.splice(0)) this.#stream.reportEnded(report)
    if (this.#series !== undefined) this.#stream.reportSeries(askForStored)
    this.#records.connected()
    if (this.#isLeaving) this.#stream.sendLeaving()
  }

  /** Called when a connection has ended or failed. Reports repeated failures of an address only once. */
  #ended(address: string, why: string, wasOpen: boolean): void {
    this.#failures++
    const text = wasOpen
      ? `lost the controller at ${address}: ${why}`
      : `the controller at ${address} cannot be used: ${why}`
    if (this.#lastFailures.get(address) !== text) this.#options.onNotice('warn', text)
    this.#lastFailures.set(address, text)
  }

  #receive({ nonce, position, upserted, removed }: ReceivedChange): void {
    const sequence = ++this.#sequence
    this.#logChange({ nonce, position, upserted, removed })
    this.#pending.set(sequence, { nonce, position, connection: this.#connection })
    const pieces = this.#state.receive(sequence, upserted, removed)
    this.#warnIfEmpty()
    // A controller that is too old to name positions sends -1.
    this.#receivedPosition = Math.max(position, 0)
    const bytes = assembleSharedDelta(sequence, pieces, removed)
    const update = { sequence, position: this.#receivedPosition, bytes }
    for (const receive of [...this.#subscribers]) receive(update)
    if (removed.length > 0) this.#saveSoon()
  }

  /** Warns if the first change set of a connection leaves nothing to serve, such as for a misspelt Gateway. */
  #warnIfEmpty(): void {
    if (this.#checkedConnection === this.#connection) return
    this.#checkedConnection = this.#connection
    if (this.#state.versions().size > 0) return
    const { namespace, name } = this.#options.node.gateway
    this.#options.onNotice(
      'warn',
      `the controller has no listener of Gateway ${namespace}/${name}: check that the Gateway exists and that --gateway names it`,
    )
  }

  #logChange({ position, upserted, removed }: ReceivedChange): void {
    const { onNotice } = this.#options
    const counts = `${upserted.length} resources changed, ${removed.length} removed`
    onNotice('debug', `received position ${position}: ${counts}`)
    for (const { key } of upserted) onNotice('trace', `received ${key}`)
    for (const key of removed) onNotice('trace', `removed ${key}`)
  }

  // Workers ---------------------------------------------------------------------------------------

  subscribe(receive: (update: ConfigUpdate) => void): () => void {
    const subscriber = (update: ConfigUpdate) => receive(update)
    this.#subscribers.add(subscriber)
    const full = this.#current()
    if (full !== undefined) receive(full)
    return () => this.#subscribers.delete(subscriber)
  }

  /**
   * Returns the full configuration for a new worker. It has the last good versions as well, because a new
   * worker may refuse the newer ones too.
   */
  #current(): ConfigUpdate | undefined {
    const sequence = this.#sequence
    if (sequence === 0) return undefined
    const pieces = (from: Iterable<EncodedResource>) => assembleSharedDelta(sequence, from, [])
    const newer = this.#state.newer()
    const base = pieces(this.#state.base())
    const position = this.#receivedPosition
    return newer.length === 0
      ? { sequence, position, bytes: base }
      : { sequence, position, base, bytes: pieces(newer) }
  }

  ack(_proxy: string, sequence: number): void {
    const hasChanged = this.#state.settle(sequence, (key) => this.#rejected.has(key))
    if (hasChanged) this.#saveSoon()
    for (const [number, { nonce, position, connection }] of this.#pending) {
      if (number > sequence) continue
      this.#pending.delete(number)
      if (connection !== this.#connection) continue
      this.#lastNonce = nonce
      this.#position = position
      this.#options.onNotice('debug', `position ${position} is in force in every worker`)
      this.#isAckDue = true
    }
    this.#acknowledge()
  }

  reject(_proxy: string, _sequence: number, rejection: Rejection): void {
    this.#rejected.set(rejection.key, rejection)
    this.#acknowledgeLater()
  }

  recover(_proxy: string, sequence: number, key: ResourceKey): void {
    this.#rejected.delete(key)
    if (this.#state.settle(sequence, (other) => this.#rejected.has(other))) this.#saveSoon()
    this.#acknowledgeLater()
  }

  /** Sends one acknowledgement for all acks and rejections of this event-loop turn. */
  #acknowledgeLater(): void {
    if (this.#isAckDue) return
    this.#isAckDue = true
    queueMicrotask(() => this.#acknowledge())
  }

  #acknowledge(): void {
    if (!this.#isAckDue) return
    this.#isAckDue = false
    if (this.#lastNonce !== undefined) this.#stream.acknowledge(this.#lastNonce, this.#refusal())
  }

  #refusal(): ChangeSetRefusal | undefined {
    if (this.#rejected.size === 0) return undefined
    const rejections = [...this.#rejected.values()]
    const message = rejections.map(({ key, message: why }) => `${key}: ${why}`).join('; ')
    return { rejections, omitted: 0, message }
  }

  /** Connects a holder of budgets to the ledger of the controller, over every connection. */
  readonly connectLedger: ConnectLedger = (name, receive) => {
    const holder: RemoteHolder = { receive, last: undefined }
    this.#holders.set(name, holder)
    return {
      report: (report) => {
        holder.last = report
        this.#stream.report(report)
      },
      close: () => {
        this.#holders.delete(name)
        this.#closeIfSettled()
      },
    }
  }

  /** Connects the time series of this proxy to the controller, over every connection. */
  readonly connectSeries: ConnectSeries = (receive) => {
    this.#series = receive
    this.#stream.reportSeries(askForStored)
    return {
      report: (report) => this.#stream.reportSeries(report),
      close: () => {
        this.#series = undefined
        this.#closeIfSettled()
      },
    }
  }

  /** Reports what an MCP server lists, now or when a controller is connected. */
  readonly reportList: ReportList = (report) => {
    const news = this.#lists.take(report)
    if (news !== undefined && !this.#stream.reportList(news)) this.#lists.wait(news)
  }

  /** Reports sessions that have ended, now or when a controller is connected. */
  readonly reportEnded = (report: EndedReport): void => {
    if (this.#stream.reportEnded(report)) return
    if (this.#waitingEnded.length < maxWaitingEnded) this.#waitingEnded.push(report)
  }

  #receiveEnded(entries: readonly EndedEntry[]): void {
    this.#endedList.add(entries, Date.now())
    for (const receive of this.#endedSubscribers) receive(entries)
  }

  subscribeEnded(receive: (entries: readonly EndedEntry[]) => void): () => void {
    const subscriber = (entries: readonly EndedEntry[]) => receive(entries)
    this.#endedSubscribers.add(subscriber)
    if (this.#endedList.size > 0) receive(this.#endedList.all())
    return () => this.#endedSubscribers.delete(subscriber)
  }

  // Disk ------------------------------------------------------------------------------------------

  #saveSoon(): void {
    if (this.#options.lastGood === undefined || this.#saveTimer !== undefined) return
    const sinceLast = performance.now() - this.#savedAt
    const wait = Math.max(firstSaveMs, nextSaveMs - sinceLast)
    this.#saveTimer = setTimeout(() => this.#save(), wait)
  }

  #save(): void {
    this.#saveTimer = undefined
    this.#savedAt = performance.now()
    this.#saving = this.#saving.then(() => this.#write())
  }

  async #write(): Promise<void> {
    try {
      await this.#options.lastGood?.save(this.#state.toStore(), new Date().toISOString())
      this.#saves++
    } catch (error) {
      this.#saveFailures++
      const why = error instanceof Error ? error.message : String(error)
      this.#options.onNotice('error', `the configuration cannot be kept on disk: ${why}`)
    }
  }

  /** Disconnects from the controller, once all budgets are settled and the last time series are stored. */
  leave(): void {
    this.#isLeaving = true
    this.#stream.sendLeaving()
    this.#closeIfSettled()
  }

  #closeIfSettled(): void {
    if (!this.#isLeaving || this.#holders.size > 0 || this.#series !== undefined) return
    this.#stream.close()
  }

  /** Disconnects, and completes a write to disk that is due. */
  async close(): Promise<void> {
    this.#stream.close()
    if (this.#saveTimer !== undefined) {
      clearTimeout(this.#saveTimer)
      this.#save()
    }
    await this.#saving
  }
}
