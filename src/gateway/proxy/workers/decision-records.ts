/** Opens the store of decision records: its folder and key in the main thread, a ring in each worker. */
import { hash, randomBytes } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { FieldDigests } from '../../../engines/core/field-digests.ts'
import type { IoCore } from '../../../engines/core/io-core.ts'
import { makeFolder } from '../../../ground/base/make-folder.ts'
import { type BlockSink, DecisionLog } from '../../../past/decisions/decision-log.ts'
import { digestKeyPath, FileRing } from '../../../past/decisions/ring.ts'
import type { HeaderReferences } from '../config/header-references.ts'
import { ReceivedHeaders } from '../decisions/received-headers.ts'
import { DecisionRecorder } from '../decisions/recorder.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'

/** Selects the requests to record, and the folder for the records. */
export interface RecordOptions {
  /** Share of successful requests to record, 0 to 1. All failed requests are recorded. */
  readonly share: number
  readonly folder: string
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
 * Creates the folder and its key file if they do not exist, and returns the key. A full disk leaves an empty key
 * file, which is written again.
 * @throws the system's error
 */
export function openRecordFolder({ folder }: RecordOptions): Uint8Array {
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

/** Appends blocks to the ring, and publishes a copy of each. */
class PublishedRing implements BlockSink {
  readonly #ring: FileRing
  readonly #publish: (block: Uint8Array) => void

  constructor(ring: FileRing, publish: (block: Uint8Array) => void) {
    this.#ring = ring
    this.#publish = publish
  }

  get isBusy(): boolean {
    return this.#ring.isBusy
  }

  idle(): Promise<void> {
    return this.#ring.idle()
  }

  append(bytes: Buffer, length: number, done: (isWritten: boolean) => void): void {
    this.#publish(new Uint8Array(bytes.subarray(0, length)))
    this.#ring.append(bytes, length, done)
  }
}

/** The records of one worker. */
export class WorkerRecords {
  readonly #settings: RecordSettings
  readonly #ring: FileRing
  readonly #log: DecisionLog
  readonly #digests: FieldDigests
  #recorder: DecisionRecorder | undefined

  /** @throws the system's error if the folder cannot be read */
  constructor(
    settings: RecordSettings,
    worker: number,
    core: IoCore,
    publish: (block: Uint8Array) => void,
  ) {
    this.#settings = settings
    const { folder, maxBytes, workers, proxy, key, share, isPublished } = settings
    const bytes = Math.floor(maxBytes / workers)
    this.#ring = new FileRing({ folder, name: `worker-${worker}`, mostBytes: bytes })
    const sink = isPublished ? new PublishedRing(this.#ring, publish) : this.#ring
    const digestKey = hash('sha256', key).slice(0, 8)
    this.#log = new DecisionLog({ proxy, worker, sink, digestKey, share, now: Date.now })
    this.#digests = new FieldDigests(core, key)
  }

  recorder(references: HeaderReferences): DecisionRecorder {
    const hidden = new Set(this.#settings.hidden)
    this.#recorder = new DecisionRecorder({
      log: this.#log,
      headers: new ReceivedHeaders(this.#digests, references, hidden),
      share: this.#settings.share,
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
      decisions_lost_total: one(this.#log.lost),
    }
  }

  /** Writes the last block and closes the file. */
  async close(): Promise<void> {
    await this.#log.end()
    await this.#ring.close()
  }
}
