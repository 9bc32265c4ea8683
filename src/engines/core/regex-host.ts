import { TextHost } from './text-host.ts'

/** Maximum number of matches that one call of the core reports. */
export const SPANS_AT_ONCE = 256
/** Size of the results of one call, which lie in the workspace before the text. */
export const SPAN_BYTES = SPANS_AT_ONCE * 8

/** The thread's instance of the core for regexes. */
export class RegexHost extends TextHost {
  /** Returns the address of a block for a text of `size` bytes; SPAN_BYTES for results lie before it. */
  textSpace(size: number): number {
    return this.workspace(SPAN_BYTES + size) + SPAN_BYTES
  }

  /** Compiles a pattern. Returns its handle, or a negative code. */
  compile(source: string, flags: number): number {
    const bytes = Buffer.from(source)
    const address = this.textSpace(bytes.length)
    this.core.bytes.set(bytes, address)
    return this.core.run('regex_compile', (exports) =>
      exports.regex_compile(address, bytes.length, flags),
    )
  }
}

let shared: RegexHost | undefined

/** Returns the thread's host, or a new one after a trap. */
export function currentHost(): RegexHost {
  if (shared === undefined || shared.core.trap !== undefined) shared = new RegexHost()
  return shared
}

/** Size of the thread's regex memory in bytes; it grows as patterns need it and never shrinks. */
export function patternMemoryBytes(): number {
  return shared?.core.bytes.length ?? 0
}
