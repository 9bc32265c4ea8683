/**
 * Regex guards in order, compiled for the kernel that reads and rewrites messages as bytes. Used if all guards
 * of a request or of a response are regex guards: requests in which they find nothing pass as they are, and
 * streams are masked as bytes. Everything else is guarded as parsed JSON.
 */
import {
  CoreError,
  compileGuards,
  type Guards,
  type TextRewriter,
  type TextsFormat,
  type TextsOptions,
} from '../../core/index.ts'
import { textOfMatches } from './match-counts.ts'
import type { RegexGuard } from './regex-guard.ts'

/** Maximum number of guards that the kernel takes. */
const maxGuards = 64

export interface GuardFinding {
  /** Undefined if the guard matched only texts that a response repeats. */
  readonly text: string | undefined
  /** Names of the rules that matched. */
  readonly names: readonly string[]
  /** Set if the message could not be read. */
  readonly isUnread?: true
}

export class RegexChain {
  readonly #guards: readonly RegexGuard[]
  #compiled: Guards | undefined

  constructor(guards: readonly RegexGuard[]) {
    this.#guards = guards
    this.#compiled = this.#compile()
  }

  /** Creates a rewriter of one message; dispose it. */
  rewriter(options: TextsOptions): TextRewriter {
    if (this.#compiled === undefined || this.#compiled.hasTrapped) this.#compiled = this.#compile()
    return this.#compiled.rewriter(options)
  }

  /**
   * Returns true if no guard finds anything in a request, and no parser can read other texts in its bytes than
   * the guards do. A request that the kernel refuses may be harmless, too.
   */
  isHarmless(bytes: Uint8Array, format: TextsFormat): boolean {
    const limit = Math.max(bytes.length, 1)
    const rewriter = this.rewriter({ format, message: 'request', limit })
    try {
      rewriter.check(bytes)
      return this.#guards.every((_, at) => rewriter.matchesOf(at).length === 0)
    } catch (error) {
      if (error instanceof CoreError) return false
      throw error
    } finally {
      rewriter.dispose()
    }
  }

  /** Returns what each guard has found so far. */
  findings(rewriter: TextRewriter): readonly (GuardFinding | undefined)[] {
    return this.#guards.map((guard, at) => {
      const matches = rewriter.matchesOf(at)
      if (matches.length === 0) return undefined
      const counts = matches.flatMap(({ rule, count }): (readonly [string, number])[] =>
        rule === undefined ? [] : [[guard.nameOf(rule), count]],
      )
      return { text: textOfMatches(counts), names: counts.map(([name]) => name) }
    })
  }

  /** Releases memory of the core. The guards are compiled again if a request still needs them. */
  dispose(): void {
    this.#compiled?.dispose()
    this.#compiled = undefined
  }

  #compile(): Guards {
    const outcome = compileGuards(
      this.#guards.map(({ rules, action }) => ({ rules, rejects: action === 'Reject' })),
    )
    if (!outcome.ok) {
      throw new Error(`guard ${outcome.guard}: matches[${outcome.rule}]: ${outcome.message}`)
    }
    return outcome.guards
  }
}

/** Returns undefined unless there are guards and the kernel can apply all of them. */
export function chainOf(
  guards: readonly ({ readonly type: string } | RegexGuard)[],
): RegexChain | undefined {
  const regexes = guards.filter((guard): guard is RegexGuard => guard.type === 'regex')
  const isWhole = regexes.length === guards.length
  return isWhole && guards.length > 0 && guards.length <= maxGuards
    ? new RegexChain(regexes)
    : undefined
}
