import { DocumentStream, type StreamPart } from '../../../engines/json/document-stream.ts'
import type { PathTexts } from '../../../engines/json/path-texts.ts'
import { MatchCounts } from '../../../engines/messages/mask/match-counts.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { BodyTransform, Exchange } from '../../../ground/exchange/exchange.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import {
  checkText,
  isAudit,
  isRegex,
  type PlacedGuard,
  sampled,
} from '../../backends/ai/policy/bind-guard.ts'
import { problemOf, textsOfPart } from './guarded-body.ts'
import { maskEach, stepName } from './judge.ts'

interface StreamGuards {
  readonly finder: PathTexts
  /** Guards with patterns only. */
  readonly guards: readonly PlacedGuard[]
  /** Whether a guard may change texts. If none may, parts that cannot be read pass. */
  readonly acts: boolean
}

/** Masks the documents of a stream while they pass. A stream with a part that cannot be read is cut. */
export class MaskedStream implements BodyTransform {
  readonly #finder: PathTexts
  readonly #guards: readonly PlacedGuard[]
  readonly #acts: boolean
  readonly #exchange: Exchange
  readonly #stream: DocumentStream
  readonly #counts: readonly MatchCounts[]
  #isUnread = false

  constructor(
    { finder, guards, acts }: StreamGuards,
    exchange: Exchange,
    kind: 'lines' | 'events',
  ) {
    this.#finder = finder
    this.#guards = sampled(guards)
    this.#acts = acts
    this.#exchange = exchange
    this.#stream = new DocumentStream(kind, exchange.bufferLimit)
    this.#counts = this.#guards.map(() => new MatchCounts())
  }

  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    if (this.#acts) this.#read(() => this.#stream.push(chunk, (part) => emit(this.#masked(part))))
    else {
      emit(chunk)
      this.#audit(() => this.#stream.push(chunk, (part) => void this.#masked(part)))
    }
  }

  end(emit: (bytes: Uint8Array) => void): void {
    if (this.#acts) this.#read(() => this.#stream.end((part) => emit(this.#masked(part))))
    else this.#audit(() => this.#stream.end((part) => void this.#masked(part)))
    for (const [at, placed] of this.#guards.entries()) {
      const found = isRegex(placed.guard) && this.#counts[at]?.textOf(placed.guard.mask)
      if (!found) continue
      const action = isAudit(placed) ? 'Audit' : 'Mask'
      addNote(this.#exchange, stepName, checkText(placed, action, found))
    }
  }

  /** @throws GatewayError response_unguardable */
  #read(read: () => void): void {
    try {
      read()
    } catch (error) {
      throw new GatewayError('response_unguardable', problemOf(error).message)
    }
  }

  /** Reads for audits only, until something cannot be read. */
  #audit(read: () => void): void {
    if (this.#isUnread) return
    try {
      read()
    } catch (error) {
      this.#isUnread = true
      const { message } = problemOf(error)
      for (const placed of this.#guards) {
        addNote(this.#exchange, stepName, checkText(placed, 'FailOpen', message))
      }
    }
  }

  #masked(part: StreamPart): Uint8Array {
    const { texts, write } = textsOfPart(part, this.#finder)
    let values = texts.map(({ value }) => value)
    for (const [at, placed] of this.#guards.entries()) {
      const counts = this.#counts[at]
      if (!isRegex(placed.guard) || counts === undefined) continue
      const isRead = texts.map(({ lists }) => (lists & (1 << placed.at)) !== 0)
      const masked = maskEach(
        placed.guard,
        values.filter((_, index) => isRead[index]),
        counts,
      )
      if (isAudit(placed)) continue
      let next = 0
      values = values.map((value, index) => (isRead[index] ? (masked[next++] ?? '') : value))
    }
    const isSame = texts.every(({ value }, at) => value === values[at])
    // The bytes of a part are overwritten later.
    return isSame ? Buffer.from(part.bytes) : write(values)
  }
}
