import { RATE_BUSY, RATE_SIZE } from './abi.ts'
import { CoreError, CoreTrap } from './errors.ts'
import type { RateExports } from './exports.ts'
import { CoreInstance } from './instance.ts'

export interface RateTableOptions {
  /** Maximum number of buckets in use at once; the table has room for twice as many. Default 4096. */
  readonly keys?: number
  /** Maximum size of a key that is stored, 33 to 1024 bytes; longer keys are hashed. Default 48. */
  readonly keyBytes?: number
}

/** The memory of a limiter: functions, a table, and the addresses of a key (`key`) and a record (`out`). */
export interface RateHost {
  readonly exports: RateExports
  readonly keyBytes: number
  readonly key: number
  readonly out: number
  /** `bytes` and `floats` view the key and the record; they stay attached when shared memory grows. */
  readonly bytes: Buffer
  readonly floats: Float64Array
  readonly table: number
  /** Number that identifies this thread in locks; 0 if no other thread uses the table. */
  readonly owner: number
  /** Creates an empty table that is not smaller than `table`; `adopt` replaces `table` by it. */
  makeTable(keys: number): number
  adopt(table: number): void
}

const cellsInGroup = 32
/** Index of the word of a table that contains its number of groups. */
export const groupsWord = 1

/** Number of groups, a power of two, so that the keys fill half of the cells; at least `present`. */
export function groupsFor(keys: number, present = 1): number {
  if (!(keys >= 1)) throw new RangeError(`keys must be at least 1, not ${keys}`)
  return 2 ** Math.ceil(Math.log2(Math.max(present, (2 * keys) / cellsInGroup)))
}

export function keyBytesOf(options: RateTableOptions): number {
  const { keyBytes = 48 } = options
  if (!(keyBytes >= 33 && keyBytes <= 1024)) {
    throw new RangeError(`keyBytes must be 33 to 1024, not ${keyBytes}`)
  }
  return keyBytes
}

interface TableLayout {
  readonly groups: number
  readonly keyBytes: number
  /** Address of the secret for hashes. */
  readonly secret: number
}

/** Makes an empty table in memory that `allocate` returns. Throws CoreError. */
export function newTable(
  exports: RateExports,
  { groups, keyBytes, secret }: TableLayout,
  allocate: (size: number) => number,
): number {
  const size = exports.rate_size(groups, keyBytes)
  if (size < 0) throw new CoreError(size, `a rate table of ${groups} groups`)
  const table = allocate(size)
  const code = exports.rate_format(table, groups, keyBytes, secret)
  if (code < 0) throw new CoreError(code, 'making a rate table')
  return table
}

export const randomSecret = () => crypto.getRandomValues(new Uint8Array(16))

/** Size of the key with its slack, after which the record is. */
export const keySlot = (keyBytes: number) => (keyBytes + 31) & ~15

/** Size of one block for the key with its slack, the record and the secret. */
export const scratchBytes = (keyBytes: number) => keySlot(keyBytes) + ((RATE_SIZE + 15) & ~15) + 16

/** Memory for the buckets of one thread, in an instance of core.wasm that can grow. */
export class LocalRateHost implements RateHost {
  readonly #core = new CoreInstance()
  readonly exports: RateExports = this.#core.exports
  readonly keyBytes: number
  readonly key: number
  readonly out: number
  readonly owner = 0
  readonly #secret: number
  #table = 0

  constructor(options: RateTableOptions) {
    this.keyBytes = keyBytesOf(options)
    this.key = this.#core.allocate(scratchBytes(this.keyBytes))
    this.out = this.key + keySlot(this.keyBytes)
    this.#secret = this.out + 32
    this.#core.bytes.set(randomSecret(), this.#secret)
    this.#table = this.makeTable(options.keys ?? 4096)
  }

  get bytes(): Buffer {
    return this.#core.bytes
  }

  get floats(): Float64Array {
    return this.#core.floats
  }

  get table(): number {
    return this.#table
  }

  makeTable(keys: number): number {
    const present = this.#table === 0 ? 1 : this.#core.words[(this.#table >> 2) + groupsWord]
    const groups = groupsFor(keys, present)
    const layout = { groups, keyBytes: this.keyBytes, secret: this.#secret }
    return newTable(this.exports, layout, (size) => this.#core.allocate(size))
  }

  adopt(table: number): void {
    this.#core.free(this.#table)
    this.#table = table
  }
}

/**
 * A group is locked for less than a microsecond, unless the thread that holds the lock is suspended.
 * After `quickAttempts`, each attempt waits for 1 ms, so that this thread can run. A thread that holds
 * a lock for a second is dead.
 */
const quickAttempts = 10
const slowAttempts = 1000

/** Retries a call while another thread holds the lock that it needs. Throws CoreTrap, CoreError. */
export function untilFree(during: string, call: () => number): number {
  try {
    for (let attempt = 0; attempt < quickAttempts; attempt++) {
      const result = call()
      if (result !== RATE_BUSY) return result
    }
    const pause = new Int32Array(new SharedArrayBuffer(4))
    for (let attempt = 0; attempt < slowAttempts; attempt++) {
      Atomics.wait(pause, 0, 0, 1)
      const result = call()
      if (result !== RATE_BUSY) return result
    }
  } catch (error) {
    throw error instanceof WebAssembly.RuntimeError ? new CoreTrap(during, error) : error
  }
  throw new CoreError(RATE_BUSY, during)
}
