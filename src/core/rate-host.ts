import { randomBytes } from 'node:crypto'
import { ERROR_MEMORY, RATE_BUSY, RATE_SIZE } from './abi.ts'
import { CoreError, CoreTrap } from './errors.ts'
import { CoreInstance } from './instance.ts'
import { instantiateSharedRate } from './load.ts'
import type { RateExports } from './rate-exports.ts'

export interface RateTableOptions {
  /** Buckets that may be in use at once; the table has room for twice as many. Default 4096. */
  readonly keys?: number
  /** Bytes of the longest key that is kept as it is, 33 to 1024; of longer ones a digest. Default 48. */
  readonly keyBytes?: number
}

/** What a limiter needs of memory: the functions, a table, room for a key and a record. */
export interface RateHost {
  readonly exports: RateExports
  readonly keyBytes: number
  readonly key: number
  readonly out: number
  /** Views that hold the key and the record; shared memory that grows does not detach them. */
  readonly bytes: Buffer
  readonly floats: Float64Array
  readonly table: number
  /** Another table, empty, never smaller than `table`, which it becomes by `adopt`. */
  makeTable(keys: number): number
  adopt(table: number): void
}

const cellsInGroup = 32
/** Word of a table that tells how many groups it has. */
const groupsWord = 1
const pageSize = 65536

/** Groups (a power of two) in which so many keys fill half of the cells, at least `present`. */
function groupsFor(keys: number, present = 1): number {
  if (!(keys >= 1)) throw new RangeError(`keys must be at least 1, not ${keys}`)
  return 2 ** Math.ceil(Math.log2(Math.max(present, (2 * keys) / cellsInGroup)))
}

function keyBytesOf(options: RateTableOptions): number {
  const { keyBytes = 48 } = options
  if (!(keyBytes >= 33 && keyBytes <= 1024)) {
    throw new RangeError(`keyBytes must be 33 to 1024, not ${keyBytes}`)
  }
  return keyBytes
}

function sizeOf(exports: RateExports, groups: number, keyBytes: number): number {
  const size = exports.rate_size(groups, keyBytes)
  if (size < 0) throw new CoreError(size, `a rate table of ${groups} groups`)
  return size
}

/** One bytes block for key (with its slack), record and secret. */
const scratchBytes = (keyBytes: number) => ((keyBytes + 31) & ~15) + ((RATE_SIZE + 15) & ~15) + 16

/** Buckets of one thread, in a growing instance of core.wasm. */
export class LocalRateHost implements RateHost {
  readonly #core = new CoreInstance()
  readonly exports: RateExports = this.#core.exports
  readonly keyBytes: number
  readonly key: number
  readonly out: number
  readonly #secret: number
  #table = 0

  constructor(options: RateTableOptions) {
    this.keyBytes = keyBytesOf(options)
    this.key = this.#core.allocate(scratchBytes(this.keyBytes))
    this.out = this.key + ((this.keyBytes + 31) & ~15)
    this.#secret = this.out + 32
    this.#core.bytes.set(randomBytes(16), this.#secret)
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
    const table = this.#core.allocate(sizeOf(this.exports, groups, this.keyBytes))
    const code = this.exports.rate_format(table, groups, this.keyBytes, this.#secret)
    if (code < 0) throw new CoreError(code, 'making a rate table')
    return table
  }

  adopt(table: number): void {
    this.#core.free(this.#table)
    this.#table = table
  }
}

// Words of the first page of shared memory. Brink and owners only rise.
const rootMark = 0
const rootTable = 1
const rootBrink = 2
const rootOwner = 3
const rootKeyBytes = 4
const rootSecret = 32
const firstFree = 64
const mark = 0x534c5254

/** Takes `size` bytes that no thread has taken yet. Throws CoreError when memory cannot grow. */
function take(memory: WebAssembly.Memory, size: number): number {
  const root = new Int32Array(memory.buffer, 0, 16)
  const rounded = (size + 15) & ~15
  const address = Atomics.add(root, rootBrink, rounded) >>> 0
  const end = address + rounded
  try {
    const missing = end - memory.buffer.byteLength
    // Another thread may grow it too; then it is larger than it needs to be.
    if (missing > 0) memory.grow(Math.ceil(missing / pageSize))
  } catch {
    throw new CoreError(ERROR_MEMORY, `taking ${size} bytes of shared memory`)
  }
  return address
}

/**
 * Memory for one limiter a thread: `new Worker(file, { workerData: { memory } })` passes it on.
 * `maximumPages` of 64 KiB bound what it may grow to: default 1024.
 */
export function createRateMemory(
  options: RateTableOptions & { readonly maximumPages?: number } = {},
): WebAssembly.Memory {
  const maximum = options.maximumPages ?? 1024
  const memory = new WebAssembly.Memory({ initial: 1, maximum, shared: true })
  const keyBytes = keyBytesOf(options)
  const root = new Int32Array(memory.buffer, 0, 16)
  root[rootBrink] = firstFree
  root[rootOwner] = 1
  root[rootKeyBytes] = keyBytes
  Buffer.from(memory.buffer).set(randomBytes(16), rootSecret)
  const exports = instantiateSharedRate(memory)
  Atomics.store(
    root,
    rootTable,
    makeSharedTable(memory, exports, groupsFor(options.keys ?? 4096), keyBytes),
  )
  Atomics.store(root, rootMark, mark)
  return memory
}

function makeSharedTable(
  memory: WebAssembly.Memory,
  exports: RateExports,
  groups: number,
  keyBytes: number,
): number {
  const table = take(memory, sizeOf(exports, groups, keyBytes))
  const code = exports.rate_format(table, groups, keyBytes, rootSecret)
  if (code < 0) throw new CoreError(code, 'making a rate table')
  return table
}

/** One thread's part in buckets that lie in shared memory. */
export class SharedRateHost implements RateHost {
  readonly exports: RateExports
  readonly keyBytes: number
  readonly key: number
  readonly out: number
  readonly bytes: Buffer
  readonly floats: Float64Array
  /** The number that this thread's locks bear. */
  readonly owner: number
  readonly #memory: WebAssembly.Memory
  readonly #root: Int32Array

  constructor(memory: WebAssembly.Memory) {
    this.#memory = memory
    this.#root = new Int32Array(memory.buffer, 0, 16)
    if (Atomics.load(this.#root, rootMark) !== mark) {
      throw new TypeError('the memory was not made by createRateMemory')
    }
    this.exports = instantiateSharedRate(memory)
    this.owner = Atomics.add(this.#root, rootOwner, 1)
    this.exports.rate_owner(this.owner)
    this.keyBytes = this.#root[rootKeyBytes] ?? 0
    this.key = take(memory, scratchBytes(this.keyBytes))
    this.out = this.key + ((this.keyBytes + 31) & ~15)
    this.bytes = Buffer.from(memory.buffer)
    this.floats = new Float64Array(memory.buffer, 0, memory.buffer.byteLength >> 3)
  }

  get table(): number {
    return Atomics.load(this.#root, rootTable) >>> 0
  }

  makeTable(keys: number): number {
    const words = new Int32Array(this.#memory.buffer)
    const groups = groupsFor(keys, Atomics.load(words, (this.table >> 2) + groupsWord))
    return makeSharedTable(this.#memory, this.exports, groups, this.keyBytes)
  }

  /** The old table stays: other threads may be about to read it. */
  adopt(table: number): void {
    Atomics.store(this.#root, rootTable, table)
  }
}

/**
 * A group is held for less than a microsecond, unless its thread is not running meanwhile: then waiting
 * gives it a processor. One that holds it for a second is dead.
 */
const quickAttempts = 10
const slowAttempts = 1000
const pause = new Int32Array(new SharedArrayBuffer(4))

/** Runs a call that another thread may have to make way for. Throws CoreTrap, CoreError. */
export function untilFree(during: string, call: () => number): number {
  try {
    for (let attempt = 0; attempt < quickAttempts + slowAttempts; attempt++) {
      const result = call()
      if (result !== RATE_BUSY) return result
      if (attempt >= quickAttempts) Atomics.wait(pause, 0, 0, 1)
    }
  } catch (error) {
    throw error instanceof WebAssembly.RuntimeError ? new CoreTrap(during, error) : error
  }
  throw new CoreError(RATE_BUSY, during)
}
