/** Masks a streamed response in the client's format as bytes, by the kernel of the core. */

import type { ByteSpan, OmittedBytes } from '../../../ground/exchange/exchange.ts'
import {
  CoreError,
  TEXTS_HIDDEN,
  TEXTS_MALFORMED,
  TEXTS_NOT_TEXT,
  TEXTS_OTHER_FORMAT,
  TEXTS_OVER,
  TEXTS_TOO_DEEP,
  TEXTS_TOO_LARGE,
  TEXTS_TOO_MANY,
  TEXTS_UNDECIDED,
  type TextRewriter,
  type TextsFormat,
} from '../../core/index.ts'
import { eventTooLarge, LlmError } from '../llm-error.ts'
import { otherResponse } from './message-forms.ts'
import type { GuardFinding, RegexChain } from './regex-chain.ts'

interface StreamGuardOptions {
  readonly format: TextsFormat
  /** Maximum number of bytes of an event. */
  readonly eventLimit: number
  /** Maximum number of bytes to hold back while a match is undecided. */
  readonly heldLimit: number
}

export class StreamGuard {
  readonly #chain: RegexChain
  readonly #rewriter: TextRewriter
  /** Set once the rewriter is disposed. */
  #findings: readonly (GuardFinding | undefined)[] | undefined

  constructor(chain: RegexChain, { format, eventLimit, heldLimit }: StreamGuardOptions) {
    this.#chain = chain
    this.#rewriter = chain.rewriter({
      format,
      message: 'stream',
      limit: eventLimit,
      heldLimit,
    })
  }

  /** Adds bytes of the response. Returns what is decided. @throws LlmError 502 */
  push(bytes: Uint8Array): Uint8Array {
    try {
      return this.#rewriter.push(bytes)
    } catch (error) {
      throw guardError(error)
    }
  }

  /** Like `push`, for bytes [start, end) without the omitted ones. The result is valid until the next call. */
  pushSpan(
    bytes: Buffer,
    start: number,
    { cutStart, cutEnd }: OmittedBytes,
    end: number,
  ): ByteSpan {
    try {
      return this.#rewriter.pushSpan(bytes, start, cutStart, cutEnd, end)
    } catch (error) {
      throw guardError(error)
    }
  }

  /** Returns everything that is held back. @throws LlmError 502 */
  end(): Uint8Array {
    try {
      return this.#rewriter.end()
    } catch (error) {
      throw guardError(error)
    }
  }

  /** Returns the events before the failure, and an error event. */
  fail({ status, message }: LlmError): Uint8Array {
    return this.#rewriter.fail(status, message)
  }

  /** What each guard has found so far. */
  get findings(): readonly (GuardFinding | undefined)[] {
    return this.#findings ?? this.#chain.findings(this.#rewriter)
  }

  /** Releases memory of the core. Idempotent. */
  dispose(): void {
    this.#findings ??= this.#chain.findings(this.#rewriter)
    this.#rewriter.dispose()
  }
}

const unreadableEvent = 'an event of the response is not JSON'

/** Messages by the code of the kernel. */
const refusals = new Map<number, string>([
  [TEXTS_MALFORMED, unreadableEvent],
  [TEXTS_NOT_TEXT, unreadableEvent],
  [TEXTS_TOO_DEEP, 'an event of the response is nested too deeply to be guarded'],
  [TEXTS_HIDDEN, 'an event of the response has a field twice'],
  [TEXTS_OTHER_FORMAT, otherResponse],
  [TEXTS_OVER, 'the response has text after its end'],
  [TEXTS_UNDECIDED, 'a pattern of a response guard stays undecided for too long'],
  [TEXTS_TOO_MANY, 'the response has too many choices or parts at once to be guarded'],
])

/** Returns the error for the client if the response cannot be guarded; other errors as they are. */
function guardError(error: unknown): unknown {
  if (!(error instanceof CoreError)) return error
  if (error.code === TEXTS_TOO_LARGE) return eventTooLarge()
  const message = refusals.get(error.code)
  return message === undefined ? error : new LlmError(502, message)
}
