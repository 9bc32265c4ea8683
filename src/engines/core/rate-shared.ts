/** Rate limits in memory that several threads share, with core-rate-shared.wasm. */
import { ERROR_MEMORY } from './abi.ts'
import { CoreError } from './errors.ts'
import type { RateExports } from './exports.ts'
import { instantiateSharedRate } from './load.ts'
import {
  groupsFor,
  groupsWord,
  keyBytesOf,
  keySlot,
  newTable,
  type RateHost,
  type RateTableOptions,
  randomSecret,
  scratchBytes,
} from './rate-host.ts'

const pageSize = 65536

// Indices of words in the first page of shared memory. Their next-free and owner values only grow.
const rootMagic = 0
const rootTable = 1
const rootNextFree = 2
const rootOwner = 3
const rootKeyBytes = 4
const rootSecret = 32
const firstFree = 64
const magic = 0x534c5254

/** Takes `size` bytes of shared memory that no thread uses. Throws CoreError if it cannot grow. */
function take(memory: WebAssembly.Memory, size: number): number {
  const root = new Int32Array(memory.buffer, 0, 16)
  const rounded = (size + 15) & ~15
  const address = Atomics.add(root, rootNextFree, rounded) >>> 0
  const end = address + rounded
  try {
    const missing = end - memory.buffer.byteLength
    // If another thread grows the memory at the same time, it becomes larger than necessary.
    if (missing > 0) memory.grow(Math.ceil(missing / pageSize))
  } catch {
    throw new CoreError(ERROR_MEMORY, `taking ${size} bytes of shared memory`)
  }
  return address
}

/**
 * Creates memory for one limiter per thread; pass it with `new Worker(file, { workerData: { memory }
 * })`. It grows up to `maximumPages` of 64 KiB. Default 1024.
 */
export function createRateMemory(
  options: RateTableOptions & { readonly maximumPages?: number } = {},
): WebAssembly.Memory {
  const maximum = options.maximumPages ?? 1024
  const memory = new WebAssembly.Memory({ initial: 1, maximum, shared: true })
  const keyBytes = keyBytesOf(options)
  const root = new Int32Array(memory.buffer, 0, 16)
  root[rootNextFree] = firstFree
  root[rootOwner] = 1
  root[rootKeyBytes] = keyBytes
  Buffer.from(memory.buffer).set(randomSecret(), rootSecret)
  const exports = instantiateSharedRate(memory)
  Atomics.store(
    root,
    rootTable,
    makeSharedTable(memory, exports, groupsFor(options.keys ?? 4096), keyBytes),
  )
  Atomics.store(root, rootMagic, magic)
  return memory
}

function makeSharedTable(
  memory: WebAssembly.Memory,
  exports: RateExports,
  groups: number,
  keyBytes: number,
): number {
  const layout = { groups, keyBytes, secret: rootSecret }
  return newTable(exports, layout, (size) => take(memory, size))
}

/** One thread's access to buckets in shared memory. */
export class SharedRateHost implements RateHost {
  readonly exports: RateExports
  readonly keyBytes: number
  readonly key: number
  readonly out: number
  readonly bytes: Buffer
  readonly floats: Float64Array
  readonly owner: number
  readonly #memory: WebAssembly.Memory
  readonly #root: Int32Array

  constructor(memory: WebAssembly.Memory) {
    this.#memory = memory
    this.#root = new Int32Array(memory.buffer, 0, 16)
    if (Atomics.load(this.#root, rootMagic) !== magic) {
      throw new TypeError('the memory was not made by createRateMemory')
    }
    this.exports = instantiateSharedRate(memory)
    this.owner = Atomics.add(this.#root, rootOwner, 1)
    this.exports.rate_owner(this.owner)
    this.keyBytes = this.#root[rootKeyBytes] ?? 0
    this.key = take(memory, scratchBytes(this.keyBytes))
    this.out = this.key + keySlot(this.keyBytes)
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

  /** Does not free the old table, because other threads may still read it. */
  adopt(table: number): void {
    Atomics.store(this.#root, rootTable, table)
  }
}
