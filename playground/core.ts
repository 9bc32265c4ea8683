// core.wasm in a page: raw memory, as docs/embedding.md tells it.
import { ABI_VERSION, ERROR_MEMORY } from '../src/core/abi.ts'
import type { CoreExports } from '../src/core/exports.ts'

/** What masks, and the text that takes the place of its matches. */
export type Rule = { replacement: string } & ({ builtin: number } | { pattern: string })

export interface Problem {
  readonly pattern: string
  readonly code: number
  /** Byte of the pattern. */
  readonly offset: number
}

const utf8 = new TextEncoder()

export class Core {
  readonly #exports: CoreExports

  constructor(exports: CoreExports) {
    this.#exports = exports
    if (exports.abi_version() !== ABI_VERSION) throw new Error('core.wasm has another ABI version')
  }

  static async load(url: string): Promise<Core> {
    const { instance } = await WebAssembly.instantiateStreaming(fetch(url), {})
    return new Core(instance.exports as unknown as CoreExports)
  }

  /** Scratch for `use` alone. */
  #scoped<Result>(use: () => Result): Result {
    const place = this.#exports.mark()
    try {
      return use()
    } finally {
      this.#exports.reset(place)
    }
  }

  #put(bytes: Uint8Array): number {
    const address = this.#exports.alloc(bytes.length) >>> 0
    if (address === 0) throw new Error(`code ${ERROR_MEMORY}: no room for ${bytes.length} bytes`)
    new Uint8Array(this.#exports.memory.buffer).set(bytes, address)
    return address
  }

  #check(result: number): number {
    if (result < 0) throw new Error(`code ${result}`)
    return result
  }

  /** A mask of the rules that compile, and the errors of the others. */
  makeMask(rules: readonly Rule[]): { mask: Mask; problems: Problem[] } {
    const set = this.#check(this.#exports.mask_new())
    const regexes: number[] = []
    const problems: Problem[] = []
    for (const rule of rules) {
      const text = utf8.encode(rule.replacement)
      this.#scoped(() => {
        if ('builtin' in rule) {
          const added = this.#exports.mask_add_builtin(
            set,
            rule.builtin,
            this.#put(text),
            text.length,
          )
          this.#check(added)
          return
        }
        const pattern = utf8.encode(rule.pattern)
        const regex = this.#exports.regex_compile(this.#put(pattern), pattern.length, 0)
        if (regex < 0) {
          const offset = this.#exports.last_error_offset()
          problems.push({ pattern: rule.pattern, code: regex, offset })
          return
        }
        regexes.push(regex)
        this.#check(this.#exports.mask_add(set, regex, this.#put(text), text.length))
      })
    }
    return { mask: { set, regexes }, problems }
  }

  freeMask({ set, regexes }: Mask): void {
    this.#exports.mask_free(set)
    for (const regex of regexes) this.#exports.regex_free(regex)
  }

  /** The masked text, and how many replacements are in it. */
  applyMask({ set }: Mask, text: string): { text: string; count: number } {
    const exports = this.#exports
    const stream = this.#check(exports.stream_new(set))
    try {
      const bytes = utf8.encode(text)
      const length = this.#scoped(() =>
        this.#check(exports.stream_push(stream, this.#put(bytes), bytes.length, 1)),
      )
      const start = exports.stream_output(stream) >>> 0
      const masked = new Uint8Array(exports.memory.buffer, start, length)
      return { text: new TextDecoder().decode(masked), count: exports.stream_count(stream) }
    } finally {
      exports.stream_free(stream)
    }
  }

  /** Bytes that a stream holds back at most; undefined when there is no bound. */
  holdOf({ set }: Mask): number | undefined {
    const bytes = this.#exports.mask_hold(set)
    return bytes < 0 ? undefined : bytes
  }

  /** A vocabulary for countTokens. */
  loadVocabulary(file: Uint8Array): number {
    return this.#scoped(() => this.#check(this.#exports.tokens_load(this.#put(file), file.length)))
  }

  countTokens(vocabulary: number, text: string): number {
    return this.#scoped(() => {
      const bytes = utf8.encode(text)
      return this.#check(this.#exports.tokens_count(vocabulary, this.#put(bytes), bytes.length))
    })
  }
}

/** Handles of a mask set and of the regexes in it. */
export interface Mask {
  readonly set: number
  readonly regexes: readonly number[]
}
