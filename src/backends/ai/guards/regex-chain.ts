/**
 * Regex guards in order, compiled for the kernel that rewrites messages as bytes. Used if all guards of a
 * request or of an answer are regex guards. Other chains, and messages that the kernel refuses, are guarded
 * as parsed JSON.
 */
import {
  CoreError,
  compileGuards,
  type Guards,
  type TextRewriter,
  type TextsFormat,
  type TextsOptions,
} from '../../../core/index.ts'
import type { ReadRouteType } from '../providers/provider.ts'
import { textOfMatches } from './match-counts.ts'
import type { RegexGuard } from './regex-guard.ts'

/** Maximum number of guards that the kernel takes. */
const maxGuards = 64

/** A message as the guards leave it. */
interface RewrittenMessage {
  readonly bytes: Uint8Array
  /** Index of the first guard that rejects the message. */
  readonly rejectedBy: number | undefined
  /** What each guard has found; undefined if it found nothing. */
  readonly findings: readonly (GuardFinding | undefined)[]
}

export interface GuardFinding {
  /** Undefined if the guard matched only texts that an answer repeats. */
  readonly text: string | undefined
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

  /** Guards a whole message; returns undefined if the kernel refuses it. */
  rewrite(
    bytes: Uint8Array,
    message: 'request' | 'answer',
    format: TextsFormat,
  ): RewrittenMessage | undefined {
    const rewriter = this.rewriter({ format, message, limit: Math.max(bytes.length, 1) })
    try {
      const rewritten = rewriter.end(bytes)
      const { rejectedBy } = rewriter.details
      return { bytes: rewritten, rejectedBy, findings: this.findings(rewriter) }
    } catch (error) {
      if (error instanceof CoreError) return undefined
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
      return { text: textOfMatches(counts) }
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

/** Returns the kernel's format for messages of a route. */
export const textsFormatOf = (route: ReadRouteType): TextsFormat =>
  route === 'VendorCTokenCount' ? 'Messages' : route
