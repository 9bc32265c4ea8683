/** Audits of a streamed response: the kernel of the core reads its bytes, and what it would have written is dropped. */
import type { OmittedBytes } from '../../../ground/exchange/exchange.ts'
import { CoreError, type TextRewriter, type TextsFormat } from '../../core/index.ts'
import type { GuardFinding, RegexChain } from './regex-chain.ts'

interface StreamAuditOptions {
  readonly format: TextsFormat
  /** Maximum number of bytes of an event. */
  readonly eventLimit: number
  /** Maximum number of bytes to hold while a match is undecided. */
  readonly heldLimit: number
}

interface Audit<Guard> {
  readonly guard: Guard
  readonly chain: RegexChain
  rewriter: TextRewriter | undefined
  finding: GuardFinding | undefined
}

const unread: GuardFinding = { text: 'the response cannot be read', names: [], isUnread: true }

/** Each audit has a chain, whose last guard is the audit itself. */
export class StreamAudits<Guard> {
  readonly #audits: readonly Audit<Guard>[]

  constructor(
    chains: readonly (readonly [guard: Guard, chain: RegexChain])[],
    { format, eventLimit, heldLimit }: StreamAuditOptions,
  ) {
    const options = { format, message: 'stream', limit: eventLimit, heldLimit } as const
    this.#audits = chains.map(([guard, chain]) => {
      const rewriter = chain.rewriter(options)
      return { guard, chain, rewriter, finding: undefined }
    })
  }

  /** Reads bytes of the client's events. */
  push(bytes: Uint8Array): void {
    this.#each((rewriter) => rewriter.push(bytes))
  }

  /** Reads the bytes [start, end) without the omitted ones. */
  pushSpan(bytes: Buffer, start: number, { cutStart, cutEnd }: OmittedBytes, end: number): void {
    // Ranges without omitted bytes have cutStart at or behind cutEnd.
    const [from, to] = cutStart < cutEnd ? [cutStart, cutEnd] : [end, end]
    this.#each((rewriter) => rewriter.pushSpan(bytes, start, from, to, end))
  }

  /** Reads what was held, and releases memory of the core. Idempotent. */
  end(): void {
    this.#each((rewriter) => rewriter.end())
    for (const audit of this.#audits) this.#close(audit)
  }

  /** What each audit has found. */
  get findings(): readonly (readonly [Guard, GuardFinding | undefined])[] {
    this.end()
    return this.#audits.map(({ guard, finding }) => [guard, finding])
  }

  #each(read: (rewriter: TextRewriter) => void): void {
    for (const audit of this.#audits) {
      if (audit.rewriter === undefined) continue
      try {
        read(audit.rewriter)
      } catch (error) {
        if (!(error instanceof CoreError)) throw error
        this.#close(audit)
        audit.finding = unread
      }
    }
  }

  #close(audit: Audit<Guard>): void {
    if (audit.rewriter === undefined) return
    audit.finding = audit.chain.findings(audit.rewriter).at(-1)
    audit.rewriter.dispose()
    audit.rewriter = undefined
  }
}
