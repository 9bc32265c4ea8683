import { ERROR_MEMORY } from './abi.ts'
import { CoreError, CoreTrap } from './errors.ts'
import type { CoreExports } from './exports.ts'
import { instantiateCore } from './load.ts'

/**
 * One instance of the core that may grow: for regular expressions and whatever else does not have
 * sockets reading into its memory.
 */
export class CoreInstance {
  readonly exports: CoreExports
  /** All memory. Growth makes a new view: take it anew after every call. */
  bytes: Buffer
  /** All memory as 32-bit words: the word of an address is at `address >> 2`. */
  words: Int32Array
  /** All memory as doubles: the double of an address is at `address >> 3`. */
  floats: Float64Array
  /** Told once, when this instance becomes unusable. */
  onTrap: ((trap: CoreTrap) => void) | undefined
  #trap: CoreTrap | undefined

  constructor(module?: WebAssembly.Module) {
    this.exports = instantiateCore(module)
    const { buffer } = this.exports.memory
    this.bytes = Buffer.from(buffer)
    this.words = new Int32Array(buffer)
    this.floats = new Float64Array(buffer)
  }

  /** Takes new views when memory has grown; `run` does so by itself. */
  refresh(): void {
    const { buffer } = this.exports.memory
    if (this.bytes.buffer === buffer) return
    this.bytes = Buffer.from(buffer)
    this.words = new Int32Array(buffer)
    this.floats = new Float64Array(buffer)
  }

  /** The trap that made this instance unusable; undefined while it is sound. */
  get trap(): CoreTrap | undefined {
    return this.#trap
  }

  /**
   * Runs one call. Throws CoreTrap when it traps or when an earlier one has; `during` names the
   * call in the message.
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

  /** What to throw for an error out of a direct call of an export; marks the instance as lost. */
  failed(during: string, error: unknown): unknown {
    if (!(error instanceof WebAssembly.RuntimeError)) return error
    if (this.#trap === undefined) {
      this.#trap = new CoreTrap(during, error)
      this.onTrap?.(this.#trap)
    }
    return this.#trap
  }

  /** Address of a new block of `size` bytes, 16-aligned, until `free`. Throws CoreError. */
  allocate(size: number): number {
    const address = this.run('block_new', (exports) => exports.block_new(size)) >>> 0
    if (address === 0) throw new CoreError(ERROR_MEMORY, `allocating ${size} bytes`)
    return address
  }

  /** Gives a block of `allocate` back. */
  free(address: number): void {
    this.run('block_free', (exports) => {
      exports.block_free(address)
      return 0
    })
  }

  /**
   * Lends scratch of `size` bytes for the duration of `use`. Throws CoreError when there is no
   * room.
   */
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
