/**
 * The configuration of a controller elsewhere, as workers get it, and their answers on the way back.
 * Change sets have numbers of this process's own: positions of the log belong to the controller, and
 * another replica after a lost log may begin anew.
 *
 * ```
 *   disk ──last good──┐
 *   controller ───────┴──► received state ──change sets──► workers
 *        ▲                      │   ▲                         │
 *        └── in force, except … ┘   └──── acks, rejections ───┘
 * ```
 */
import type { ResourceKey } from '../../model/resources.ts'
import type { ConfigChannel, ConfigUpdate, Rejection } from '../../wire/channel.ts'
import type { Refusal } from '../../wire/discovery.ts'
import { assembleSharedDelta, type EncodedResource } from '../../wire/encode.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import type { LastGood } from './last-good.ts'
import { ReceivedState } from './received-state.ts'
import { ControllerStream, type ReceivedChange, type StreamOptions } from './stream.ts'

type NoticeLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error'

interface RemoteChannelOptions
  extends Pick<StreamOptions, 'addresses' | 'node' | 'tokenFile' | 'caFile'> {
  /** Absent: nothing is kept on disk. */
  readonly lastGood?: LastGood
  /** What operators should know. */
  readonly onNotice: (severity: NoticeLevel, text: string) => void
}

/** A change set that workers have not all answered. */
interface Owed {
  readonly nonce: string
  readonly position: number
  /** Of which connection; answers to an older one are of no use to anybody. */
  readonly connection: number
}

/** How long changes are gathered before they are written to disk. */
const firstSaveMs = 100
const nextSaveMs = 2_000

export class RemoteChannel implements ConfigChannel {
  readonly #options: RemoteChannelOptions
  readonly #state = new ReceivedState()
  readonly #stream: ControllerStream
  readonly #subscribers = new Set<(update: ConfigUpdate) => void>()
  readonly #rejected = new Map<ResourceKey, Rejection>()
  readonly #owed = new Map<number, Owed>()
  /** Number of the last change set; 0 before the first. */
  #sequence = 0
  #connection = 0
  #connects = 0
  #failures = 0
  /** Position of the controller's log that is in force; -1 before the first. */
  #position = -1
  #lastNonce: string | undefined
  #isAnswerDue = false
  /** Address -> what was last told of it since there was a controller. */
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
      versions: () => this.#state.versions(),
      onChange: (change) => this.#receive(change),
      onOpen: (address) => this.#opened(address),
      onEnd: (address, why, wasOpen) => this.#ended(address, why, wasOpen),
    })
  }

  /** Changes with whatever is received and kept. */
  get activity(): number {
    return this.#sequence + this.#saves + this.#connects
  }

  /** What metrics tell of the connection. */
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

  /** Publishes what was kept on disk, where there is any, and begins to connect. */
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
  }

  /** The same failure of an address again and again is told once. */
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
    this.#tellChange({ nonce, position, upserted, removed })
    this.#owed.set(sequence, { nonce, position, connection: this.#connection })
    const pieces = this.#state.receive(sequence, upserted, removed)
    const update = { sequence, bytes: assembleSharedDelta(sequence, pieces, removed) }
    for (const receive of [...this.#subscribers]) receive(update)
    if (removed.length > 0) this.#saveSoon()
  }

  #tellChange({ position, upserted, removed }: ReceivedChange): void {
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

  /** First what is good, then what is newer: who starts with a bad version has no good one. */
  #current(): ConfigUpdate | undefined {
    const sequence = this.#sequence
    if (sequence === 0) return undefined
    const pieces = (from: Iterable<EncodedResource>) => assembleSharedDelta(sequence, from, [])
    const newer = this.#state.newer()
    const base = pieces(this.#state.base())
    return newer.length === 0 ? { sequence, bytes: base } : { sequence, base, bytes: pieces(newer) }
  }

  ack(_proxy: string, sequence: number): void {
    const hasChanged = this.#state.settle(sequence, (key) => this.#rejected.has(key))
    if (hasChanged) this.#saveSoon()
    for (const [number, { nonce, position, connection }] of this.#owed) {
      if (number > sequence) continue
      this.#owed.delete(number)
      if (connection !== this.#connection) continue
      this.#lastNonce = nonce
      this.#position = position
      this.#options.onNotice('debug', `position ${position} is in force in every worker`)
      this.#isAnswerDue = true
    }
    this.#answer()
  }

  reject(_proxy: string, _sequence: number, rejection: Rejection): void {
    this.#rejected.set(rejection.key, rejection)
    this.#answerLater()
  }

  recover(_proxy: string, sequence: number, key: ResourceKey): void {
    this.#rejected.delete(key)
    if (this.#state.settle(sequence, (other) => this.#rejected.has(other))) this.#saveSoon()
    this.#answerLater()
  }

  /** Workers tell rejections and the watermark that passes them in one turn: one answer for all. */
  #answerLater(): void {
    if (this.#isAnswerDue) return
    this.#isAnswerDue = true
    queueMicrotask(() => this.#answer())
  }

  #answer(): void {
    if (!this.#isAnswerDue) return
    this.#isAnswerDue = false
    if (this.#lastNonce !== undefined) this.#stream.answer(this.#lastNonce, this.#refusal())
  }

  #refusal(): Refusal | undefined {
    if (this.#rejected.size === 0) return undefined
    const rejections = [...this.#rejected.values()]
    const message = rejections.map(({ key, message: why }) => `${key}: ${why}`).join('; ')
    return { rejections, omitted: 0, message }
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

  /** Tells the controller that this proxy goes. */
  leave(): void {
    this.#stream.close()
  }

  /** Leaves, and writes what is not written yet. */
  async close(): Promise<void> {
    this.leave()
    if (this.#saveTimer !== undefined) {
      clearTimeout(this.#saveTimer)
      this.#save()
    }
    await this.#saving
  }
}
