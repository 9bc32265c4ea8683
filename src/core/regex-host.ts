import { CoreInstance } from './instance.ts'

/** Matches to report in one call of the core; more take more calls. */
export const SPANS_AT_ONCE = 256
/** Room for them, before the text in the workspace. */
export const SPAN_BYTES = SPANS_AT_ONCE * 8
/** A workspace above this is given back after the call that needed it. */
const LARGEST_KEPT = 1 << 20

/** The thread's instance for regexes, with a block for texts that calls reuse. */
export class RegexHost {
  readonly core = new CoreInstance()
  #workspace = 0
  #capacity = 0

  /** Address of at least SPAN_BYTES for results, followed by `size` bytes for text and slack. */
  workspace(size: number): number {
    const needed = SPAN_BYTES + size + 16
    if (needed > this.#capacity) {
      if (this.#workspace !== 0) this.core.exports.block_free(this.#workspace)
      this.#workspace = 0
      this.#capacity = 0
      const capacity = Math.max(8192, needed)
      this.#workspace = this.core.allocate(capacity)
      this.#capacity = capacity
    }
    return this.#workspace
  }

  /** Gives a large workspace back. */
  trim(): void {
    if (this.#capacity <= LARGEST_KEPT) return
    this.core.exports.block_free(this.#workspace)
    this.#workspace = 0
    this.#capacity = 0
  }
}

let shared: RegexHost | undefined

/** The thread's host; a new one after a trap. */
export function currentHost(): RegexHost {
  if (shared === undefined || shared.core.trap !== undefined) shared = new RegexHost()
  return shared
}

/** Memory of the thread's host in bytes; it grows as patterns need it and never shrinks. */
export function patternMemoryBytes(): number {
  return shared?.core.bytes.length ?? 0
}

/** Compiles a pattern: a handle or a code. */
export function compileIn(host: RegexHost, source: string, flags: number): number {
  const bytes = Buffer.from(source)
  const address = host.workspace(bytes.length) + SPAN_BYTES
  host.core.bytes.set(bytes, address)
  return host.core.run('regex_compile', (exports) =>
    exports.regex_compile(address, bytes.length, flags),
  )
}

/** Copies a text into the core; its length in bytes. */
export function put(host: RegexHost, address: number, text: string | Uint8Array): number {
  if (typeof text === 'string') return host.core.bytes.write(text, address, 'utf8')
  host.core.bytes.set(text, address)
  return text.length
}
