/** Opens the store of decision records: its folder and key in the main thread, a ring in each worker. */
import { hash, randomBytes } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { FieldDigests } from '../../../engines/core/field-digests.ts'
import type { IoCore } from '../../../engines/core/io-core.ts'
import { makeFolder } from '../../../ground/base/make-folder.ts'
import {
  type BlockSink,
  DecisionLog,
  type RecordShare,
} from '../../../past/decisions/decision-log.ts'
import { digestKeyPath, FileRing } from '../../../past/decisions/ring.ts'
import type { HeaderReferences } from '../config/header-references.ts'
import { ReceivedHeaders } from '../decisions/received-headers.ts'
import { DecisionRecorder } from '../decisions/recorder.ts'
import { Sampler } from '../decisions/sampler.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'

/** Selects the requests to record, and the folder for the records. */
export interface RecordOptions {
  readonly share: RecordShare
  /** If omitted, records are only published. */
  readonly folder?: string
  /** Maximum size of the records of all workers. */
  readonly maxBytes: number
  /** Names of further header fields and query parameters that carry credentials, in lower case. */
  readonly hidden: readonly string[]
}

/** The options that each worker needs to open its ring. */
export interface RecordSettings extends RecordOptions {
  readonly proxy: string
  readonly workers: number
  /** Key of the digests of header values. */
  readonly key: Uint8Array
  /** Whether workers also send blocks to the main thread, which publishes them. */
  readonly isPublished: boolean
}

const keyBytes = 16

/**
 * Creates the folder and its key file if they do not exist, and returns the key. Without a folder, the key is new. An
 * empty key file, which a full disk leaves, is written again.
 * @throws the system's error
 */
export function openRecordFolder({ folder }: RecordOptions): Uint8Array {
  if (folder === undefined) return randomBytes(keyBytes)
  makeFolder(folder, 0o700)
  const path = digestKeyPath(folder)
  try {
    writeFileSync(path, randomBytes(keyBytes), { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  if (statSync(path).size === 0) writeFileSync(path, randomBytes(keyBytes))
  const key = readFileSync(path)
  if (key.length !== keyBytes) throw new Error(`${path} does not have ${keyBytes} bytes`)
  return key
}

type Publish = (block: Uint8Array, isSample: boolean) => void

/** Appends blocks to a ring of files, publishes a copy of each, or both. */
class WorkerSink implements BlockSink {
  readonly #ring: FileRing | undefined
  readonly #publish: ((block: Uint8Array) => void) | undefined

  constructor(ring: FileRing | undefined, publish: ((block: Uint8Array) => void) | undefined) {
    this.#ring = ring
    this.#publish = publish
  }

  get isBusy(): boolean {
    return this.#ring?.isBusy === true
  }

  async idle(): Promise<void> {
    await this.#ring?.idle()
  }

  append(bytes: Buffer, length: number, done: (isWritten: boolean) => void): void {
    this.#publish?.(new Uint8Array(bytes.subarray(0, length)))
    if (this.#ring === undefined) done(true)
    else this.#ring.append(bytes, length, done)
  }

  async close(): Promise<void> {
    await this.#ring?.close()
  }
}

interface OpenLog {
  readonly log: DecisionLog
  readonly sink: WorkerSink
}

/** Delay until a block of a sample is written. Its records come one by one, and share their texts in a block. */
const sampleFlushMs = 1_000

/** The records of one worker. */
export class WorkerRecords {
  readonly #settings: RecordSettings
  readonly #worker: number
  readonly #publish: Publish
  readonly #log: OpenLog
  /** The requests of a sample that did not fail. */
  readonly #sample: OpenLog | undefined
  readonly #digests: FieldDigests
  #recorder: DecisionRecorder | undefined

  /** @throws the system's error if the folder cannot be read */
  constructor(settings: RecordSettings, worker: number, core: IoCore, publish: Publish) {
    this.#settings = settings
    this.#worker = worker
    this.#publish = publish
    this.#digests = new FieldDigests(core, settings.key)
    this.#log = this.#openLog('worker')
    this.#sample = settings.share === 'sample' ? this.#openLog('sample') : undefined
  }

  /** A sample has its own half of the space, so that many failures do not push it out. */
  #openLog(name: 'worker' | 'sample'): OpenLog {
    const { folder, maxBytes, workers, proxy, key, share, isPublished } = this.#settings
    const worker = this.#worker
    const mostBytes = Math.floor(maxBytes / workers / (share === 'sample' ? 2 : 1))
    const ring =
      folder === undefined
        ? undefined
        : new FileRing({ folder, name: `${name}-${worker}`, mostBytes })
    const publish = (block: Uint8Array) => this.#publish(block, name === 'sample')
    const sink = new WorkerSink(ring, isPublished ? publish : undefined)
    const digestKey = hash('sha256', key).slice(0, 8)
    const flush = name === 'sample' ? { flushMs: sampleFlushMs } : {}
    const options = { proxy, worker, sink, digestKey, share, now: Date.now, ...flush }
    return { log: new DecisionLog(options), sink }
  }

  recorder(references: HeaderReferences): DecisionRecorder {
    const { share, workers, hidden: names } = this.#settings
    const hidden = new Set(names)
    const sample = this.#sample
    const sampler = new Sampler(workers, Math.random)
    this.#recorder = new DecisionRecorder({
      log: this.#log.log,
      headers: new ReceivedHeaders(this.#digests, references, hidden),
      share,
      ...(sample && { sample: { sampler, log: sample.log } }),
      hidden,
      random: Math.random,
      idPrefix: randomBytes(6).toString('hex'),
    })
    return this.#recorder
  }

  metrics(): MetricsSnapshot {
    const one = (value: number) => [{ labels: [], values: [value] }]
    return {
      decisions_recorded_total: one(this.#recorder?.recorded ?? 0),
      decisions_lost_total: one(this.#log.log.lost + (this.#sample?.log.lost ?? 0)),
    }
  }

  /** Writes the last blocks and closes the files. */
  async close(): Promise<void> {
    for (const { log, sink } of [this.#log, ...(this.#sample ? [this.#sample] : [])]) {
      await log.end()
      await sink.close()
    }
  }
}
