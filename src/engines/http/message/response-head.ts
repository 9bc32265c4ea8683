import { GatewayError } from '../../../ground/errors/index.ts'
import type { HeaderFields, ResponseHead } from '../../../ground/exchange/exchange.ts'
import {
  FLAG_CHUNKED,
  FLAG_PERSISTENT,
  FLAG_UPGRADE,
  HEAD_UPGRADE,
  NAME_CONTENT_LENGTH,
  NAME_KEEP_ALIVE,
  NAME_TRAILER,
} from '../../core/index.ts'
import type { Borrower, HeadLoan } from './head-loan.ts'
import { type FramingFields, type HeadOutput, HeadText } from './head-output.ts'
import { type HeadReader, nameBit } from './head-reader.ts'
import { checkField, FieldList } from './header-fields.ts'
import { dateLine, statusLine } from './status-line.ts'

const nothing = Buffer.alloc(0)
const lengthBit = nameBit(NAME_CONTENT_LENGTH)
const trailerBit = nameBit(NAME_TRAILER)

/** A response head as the data plane reads and edits it, and as it is written to the client. */
export class ResponseHeadView implements ResponseHead, Borrower {
  readonly fields: FieldList = new FieldList(0)
  contentLength = -1
  /** The status that the upstream sent; 0 for a response of the gateway's own. */
  receivedStatus = 0
  #flags = 0
  #minor = 1
  #bytes: Buffer = nothing
  #base = 0
  #length = 0
  /** The loan of the memory that contains the bytes; undefined if nothing overwrites them. */
  #loan: HeadLoan | undefined
  #status = 0
  #statusEdited = false
  readonly #upgradeSpan = { start: -1, end: -1 }

  /** Loads the response head that the reader has just read at `base` of memory that will be overwritten. */
  borrow(reader: HeadReader, loan: HeadLoan, base: number): void {
    loan.lendTo(this)
    this.load(reader, loan.memory, base)
    this.#loan = loan
  }

  /** Loads the response head that the reader has just read at `base` of bytes that nothing overwrites. */
  load(reader: HeadReader, bytes: Buffer, base: number): void {
    this.#bytes = bytes
    this.#base = base
    this.#loan = undefined
    this.#length = reader.headLength
    this.#flags = reader.flags
    this.#minor = reader.minor
    this.#status = reader.status
    this.receivedStatus = reader.status
    this.#statusEdited = false
    this.contentLength = reader.contentLength
    reader.span(HEAD_UPGRADE, this.#upgradeSpan)
    this.fields.load(reader, bytes, base)
  }

  /**
   * Replaces the head by that of a response of the gateway's own.
   * @throws GatewayError filter_failed if it could not be sent
   */
  compose(status: number, headers: readonly (readonly [string, string])[]): void {
    this.fields.reset()
    this.#loan = undefined
    this.#flags = 0
    this.status = status
    this.receivedStatus = 0
    this.contentLength = -1
    for (const [name, value] of headers) {
      checkField(name, value)
      this.fields.add(name, value)
    }
  }

  onLoanEnd(loan: HeadLoan): void {
    if (this.#loan !== loan) return
    this.#loan = undefined
    this.#bytes = Buffer.from(this.#bytes.subarray(this.#base, this.#base + this.#length))
    this.#base = 0
    this.fields.relocate(this.#bytes, 0)
  }

  /** Releases the bytes of the head. */
  release(): void {
    this.#bytes = nothing
    this.#loan = undefined
    this.fields.relocate(nothing, 0)
    this.fields.reset()
  }

  get headers(): HeaderFields {
    return this.fields
  }

  get status(): number {
    return this.#status
  }

  set status(status: number) {
    if (!Number.isInteger(status) || status < 200 || status > 599) {
      throw new GatewayError('filter_failed', 'bad status')
    }
    this.#status = status
    this.#statusEdited = true
  }

  get isChunked(): boolean {
    return (this.#flags & FLAG_CHUNKED) !== 0
  }

  get isPersistent(): boolean {
    return (this.#flags & FLAG_PERSISTENT) !== 0
  }

  /** The Keep-Alive field, which is not forwarded. */
  get keepAlive(): string | undefined {
    return this.fields.knownValue(NAME_KEEP_ALIVE)
  }

  /** The protocol that a 101 response switches to; undefined for other responses. */
  get upgrade(): string | undefined {
    if ((this.#flags & FLAG_UPGRADE) === 0) return undefined
    const { start, end } = this.#upgradeSpan
    return this.#bytes.toString('latin1', this.#base + start, this.#base + end)
  }

  /**
   * The head for an HTTP/1.1 client, including the fields that frame the body, without empty line. A final
   * response without Date gets one (RFC 9110 6.6.1).
   */
  text(framing: FramingFields): string {
    const out = new HeadText()
    this.writeTo(out, framing)
    return out.text
  }

  /** Writes the head as `text` returns it. */
  writeTo(out: HeadOutput, framing: FramingFields): void {
    let dropped = framing === 'as-is' ? 0 : lengthBit
    // Only a chunked body can have trailers after it.
    if (dropped !== 0 && framing !== 'chunked') dropped |= trailerBit
    // A received head may lack the space after the status; a sent one must have it (RFC 9112 4).
    const keepsLine =
      !this.#statusEdited && this.#minor === 1 && this.#bytes[this.#base + 12] === 0x20
    if (!keepsLine) out.appendText(statusLine(this.#status))
    this.fields.writeTo(out, dropped, keepsLine ? 0 : -1)
    if (framing === 'chunked') out.appendText('transfer-encoding: chunked\r\n')
    else if (typeof framing === 'number') out.appendText(`content-length: ${framing}\r\n`)
    if (this.#status >= 200 && !this.fields.has('date')) out.appendText(dateLine())
  }
}
