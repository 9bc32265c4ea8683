import { fieldKinds, type HeaderEntry, isPseudo } from './header-entry.ts'
import type { FieldSink } from './hpack-decoder.ts'

const statusPattern = /^[1-5][0-9]{2}$/

/** The fields of a response's head, and the head of HTTP/1.1 that says the same (RFC 9113 8.3.2). */
export class ResponseFields implements FieldSink {
  readonly #limit: number
  isMalformed = false
  size = 0
  #status = ''
  #lines = ''

  /** `limit`: octets beyond which fields are counted and no longer kept. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Forgets the last head. */
  start(): void {
    this.isMalformed = false
    this.size = 0
    this.#status = ''
    this.#lines = ''
  }

  /** 0 if there is none. */
  get status(): number {
    return Number(this.#status)
  }

  onField(entry: HeaderEntry): void {
    this.size += entry.size
    if (this.size > this.#limit) this.isMalformed = true
    else if (entry.kind === fieldKinds.status) {
      if (this.#status !== '' || this.#lines !== '') this.isMalformed = true
      this.#status = entry.value
    } else if (isPseudo(entry.kind) || entry.kind === fieldKinds.bad) this.isMalformed = true
    else this.#lines += entry.line
  }

  /** Is this the head of a response? A switch of protocols is none (RFC 9113 8.6). */
  check(): boolean {
    return !this.isMalformed && statusPattern.test(this.#status) && this.#status !== '101'
  }

  text(): string {
    return `HTTP/1.1 ${this.#status} \r\n${this.#lines}\r\n`
  }
}
