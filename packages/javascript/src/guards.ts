import { CoreError, nameOfCode } from '../../../src/engines/core/errors.ts'
import {
  type Guards as CoreGuards,
  compileGuards,
  type TextRewriter,
} from '../../../src/engines/core/texts.ts'
import { plain } from './bytes.ts'
import { freeLater } from './free-later.ts'
import { patternOf, type Rule, rulesOf } from './masks.ts'
import { PatternError } from './patterns.ts'

/** What a message is written in: chat completions, messages, responses, or embeddings. */
export type Format = 'Completions' | 'Messages' | 'Responses' | 'Embeddings'

/** A request, a whole answer, or an answer of server-sent events. */
export type Kind = 'request' | 'answer' | 'stream'

/** Maximum number of bytes of a document, or of an event of a stream. @internal */
export const defaultLimit = 32 * 1024 * 1024

/** A message cannot be judged, so it must not pass. */
export class GuardsError extends Error {
  override readonly name = 'GuardsError'
}

/** Rules that are applied together. A match is masked, or rejects the message if `rejects` is set. */
export interface Guard {
  readonly rules: readonly Rule[]
  readonly rejects?: boolean
}

/** What is known of a message so far. Parts are undefined if the message has not reported them. */
export interface MessageDetails {
  readonly inputTokens: number | undefined
  readonly outputTokens: number | undefined
  readonly model: string | undefined
  /** True if the request asks for a stream. */
  readonly isStream: boolean
  /** Index of the first guard that rejects the message. */
  readonly rejectedBy: number | undefined
}

function compile(guards: readonly Guard[]): CoreGuards {
  const outcome = compileGuards(
    guards.map(({ rules, rejects = false }) => ({ rules: rulesOf(rules), rejects })),
  )
  if (outcome.ok) return outcome.guards
  throw new PatternError(patternOf(guards[outcome.guard]?.rules[outcome.rule]), outcome)
}

/** Guards in order; each sees the texts as the guards before it leave them. */
export class Guards {
  readonly #guards: readonly Guard[]
  #compiled: CoreGuards

  /** @throws PatternError */
  constructor(guards: readonly Guard[]) {
    this.#guards = [...guards]
    this.#compiled = freeLater(this, compile(guards))
  }

  /** A rewriter of one message. */
  rewriter(format: Format, kind: Kind, options: { readonly limit?: number } = {}): Rewriter {
    if (this.#compiled.hasTrapped) this.#compiled = freeLater(this, compile(this.#guards))
    const { limit = defaultLimit } = options
    return new Rewriter(this.#compiled.rewriter({ format, message: kind, limit }), kind)
  }

  /**
   * Masks the texts of a whole message, given as text or as bytes.
   * @throws GuardsError if the message cannot be read, or if a guard rejects it.
   */
  rewrite(format: Format, kind: Kind, message: string): string
  rewrite(format: Format, kind: Kind, message: Uint8Array): Uint8Array<ArrayBuffer>
  rewrite(format: Format, kind: Kind, message: string | Uint8Array): string | Uint8Array {
    const rewriter = this.rewriter(format, kind)
    const isText = typeof message === 'string'
    const masked = rewriter.end(isText ? new TextEncoder().encode(message) : message)
    const { rejectedBy } = rewriter.details
    rewriter[Symbol.dispose]()
    if (rejectedBy !== undefined) throw new GuardsError(`guard ${rejectedBy} rejects the ${kind}`)
    return isText ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(masked) : masked
  }

  /** Frees memory at once. Otherwise it is freed when the guards are collected. */
  [Symbol.dispose](): void {
    this.#compiled.dispose()
  }
}

/** Rewrites one message, which may arrive in pieces. After an error, the rest of it must not pass. */
export class Rewriter {
  readonly #rewriter: TextRewriter
  readonly #kind: Kind

  /** @internal Call `Guards.rewriter` instead. */
  constructor(rewriter: TextRewriter, kind: Kind) {
    this.#rewriter = freeLater(this, rewriter)
    this.#kind = kind
  }

  /** Adds bytes of the message. Returns what is ready. @throws GuardsError */
  push(piece: Uint8Array): Uint8Array<ArrayBuffer> {
    return this.#judge(() => this.#rewriter.push(piece))
  }

  /** Adds the last bytes. Returns everything that remains. @throws GuardsError */
  end(piece: Uint8Array = new Uint8Array()): Uint8Array<ArrayBuffer> {
    return this.#judge(() => this.#rewriter.end(piece))
  }

  /** Ends the message with an error in its format, after the events that were ready before. */
  fail(status: number, message: string): Uint8Array<ArrayBuffer> {
    return plain(this.#rewriter.fail(status, message))
  }

  get details(): MessageDetails {
    const { inputTokens, outputTokens, model, isStream, rejectedBy } = this.#rewriter.details
    return { inputTokens, outputTokens, model, isStream, rejectedBy }
  }

  /** Frees memory at once. Otherwise it is freed when the rewriter is collected. */
  [Symbol.dispose](): void {
    this.#rewriter.dispose()
  }

  #judge(read: () => Uint8Array): Uint8Array<ArrayBuffer> {
    try {
      return plain(read())
    } catch (error) {
      const reason = error instanceof CoreError ? nameOfCode(error.code) : 'the core has failed'
      throw new GuardsError(`the ${this.#kind} cannot be read: ${reason}`, { cause: error })
    }
  }
}
