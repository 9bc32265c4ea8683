import { fail, type Outcome, succeed } from '../../ground/base/outcome.ts'
import { REGEX_MATCH_ONLY } from './abi.ts'
import type { CoreInstance } from './instance.ts'
import { regexProblem } from './regex-problem.ts'

/** The reason why the core refuses a listener or route. */
export interface CoreProblem {
  /** A negative code of the ABI. */
  readonly code: number
  readonly message: string
}

/** Regexes that routes share: one handle per source, freed after its last use. */
export class PatternPool {
  readonly #core: CoreInstance
  readonly #patterns = new Map<string, { handle: number; users: number }>()

  constructor(core: CoreInstance) {
    this.#core = core
  }

  /** Returns a handle of the regex for full matches. Every success requires one call of `release`. */
  acquire(source: string): Outcome<number, CoreProblem> {
    const present = this.#patterns.get(source)
    if (present !== undefined) {
      present.users++
      return succeed(present.handle)
    }
    const handle = this.#compile(source)
    if (handle < 0) {
      const { message } = regexProblem(source, handle, this.#core.exports.last_error_offset())
      return fail({ code: handle, message: `pattern ${JSON.stringify(source)}: ${message}` })
    }
    this.#patterns.set(source, { handle, users: 1 })
    return succeed(handle)
  }

  #compile(source: string): number {
    const bytes = Buffer.from(source)
    return this.#core.withScratch(bytes.length + 16, (address) => {
      this.#core.bytes.set(bytes, address)
      return this.#core.run('regex_compile', (exports) =>
        exports.regex_compile(address, bytes.length, REGEX_MATCH_ONLY),
      )
    })
  }

  release(source: string): void {
    const present = this.#patterns.get(source)
    if (present === undefined || --present.users > 0) return
    this.#patterns.delete(source)
    this.#core.exports.regex_free(present.handle)
  }
}

/** A core whose route tables share their regexes. */
export interface CoreWithPatterns extends CoreInstance {
  readonly patterns: PatternPool
}
