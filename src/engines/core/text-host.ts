import { CoreInstance } from './instance.ts'

/** A workspace larger than this is released after the call that needed it. */
const largestKept = 1 << 20
/** Number of readable bytes that must follow every text. */
const slack = 16

/** An instance of the core with a block of memory for texts, which calls reuse. */
export class TextHost {
  readonly core: CoreInstance
  #workspace = 0
  #capacity = 0

  /** The module is core.wasm unless another one is given. */
  constructor(module?: WebAssembly.Module) {
    this.core = new CoreInstance(module)
  }

  /** Returns the address of a block for a text of `size` bytes. The next call overwrites its content. */
  workspace(size: number): number {
    const needed = size + slack
    if (needed > this.#capacity) {
      this.#release()
      const capacity = Math.max(8192, needed)
      this.#workspace = this.core.allocate(capacity)
      this.#capacity = capacity
    }
    return this.#workspace
  }

  /** Releases the workspace if it is large. */
  trim(): void {
    if (this.#capacity > largestKept) this.#release()
  }

  #release(): void {
    if (this.#workspace !== 0) this.core.free(this.#workspace)
    this.#workspace = 0
    this.#capacity = 0
  }

  /** Copies a text to an address. Returns its length in bytes. Lone surrogates become U+FFFD. */
  put(text: string | Uint8Array, address: number): number {
    if (typeof text === 'string') return this.core.bytes.write(text, address, 'utf8')
    this.core.bytes.set(text, address)
    return text.length
  }
}

/** Maximum number of bytes of a text in UTF-8. */
export const sizeOf = (text: string | Uint8Array): number =>
  typeof text === 'string' ? text.length * 3 : text.length
