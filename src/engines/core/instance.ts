import { ERROR_MEMORY } from './abi.ts'
import { CoreError, CoreTrap } from './errors.ts'
import type { CoreExports } from './exports.ts'
import { instantiateCore } from './load.ts'

/**
 * An instance of the core whose memory may grow. Used for everything, such as regular expressions,
 * except for memory that sockets read into.
 */
export class CoreInstance {
  readonly exports: CoreExports
  /** The whole memory. Growth replaces the view, so read this field again after every call. */
  bytes: Buffer
  /** The whole memory as 32-bit words: the word of an address is at `address >> 2`. */
  words: Int32Array
  /** The whole memory as doubles: the double of an address is at `address >> 3`. */
  floats: Float64Array
  /** Called once, when this instance traps and becomes unusable. */
  onTrap: ((trap: CoreTrap) => void) | undefined
  #trap: CoreTrap | undefined

  constructor(module?: WebAssembly.Module) {
    this.exports = instantiateCore(module)
    const { buffer } = this.exports.memory
    this.bytes = Buffer.from(buffer)
    this.words = new Int32Array(buffer)
    this.floats = new Float64Array(buffer)
  }

  /** Creates new views if the memory has grown. `run` does this after each call. */
  refresh(): void {
    const { buffer } = this.exports.memory
    if (this.bytes.buffer === buffer) return
    this.bytes = Buffer.from(buffer)
    this.words = new Int32Array(buffer)
    this.floats = new Float64Array(buffer)
  }

  /** The trap that made this instance unusable; undefined while it is usable. */
  get trap(): CoreTrap | undefined {
    return this.#trap
  }

  /**
   * Runs one call. Throws CoreTrap if this call or an earlier one has trapped. The error message
   * contains `during` as the name of the call.
   */
  run(during: string, call: (exports: CoreExports) => number): number {
    if (this.#trap !== undefined) throw this.#trap
    try {
      const result = call(this.exports)
      this.refresh()
      return result
    } catch (error) {
      throw this.failed(during, error)
    }
  }

  /** The error to throw for a failed direct call of an export. A trap makes the instance unusable. */
  failed(during: string, error: unknown): unknown {
    if (!(error instanceof WebAssembly.RuntimeError)) return error
    if (this.#trap === undefined) {
      this.#trap = new CoreTrap(during, error)
      this.onTrap?.(this.#trap)
    }
    return this.#trap
  }

  /** Allocates `size` bytes until `free` and returns their 16-aligned address. Throws CoreError. */
  allocate(size: number): number {
    const address = this.run('block_new', (exports) => exports.block_new(size)) >>> 0
    if (address === 0) throw new CoreError(ERROR_MEMORY, `allocating ${size} bytes`)
    return address
  }

  /** Frees a block that `allocate` has returned. */
  free(address: number): void {
    this.run('block_free', (exports) => {
      exports.block_free(address)
      return 0
    })
  }

  /** Allocates `size` bytes until `use` returns. Throws CoreError if there is no room. */
  withScratch<Result>(size: number, use: (address: number) => Result): Result {
    const place = this.run('mark', (exports) => exports.mark())
    const address = this.run('alloc', (exports) => exports.alloc(size)) >>> 0
    if (address === 0) throw new CoreError(ERROR_MEMORY, `allocating ${size} bytes of scratch`)
    try {
      return use(address)
    } finally {
      if (this.#trap === undefined) this.exports.reset(place)
    }
  }
}
