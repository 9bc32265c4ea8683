/**
 * Reads the text messages of a WebSocket without changing its bytes. Layout of a frame (RFC 6455 5.2):
 *
 *   fin, opcode | mask, length 0..125, 126 = u16, 127 = u64 | key if masked | payload
 *
 * Extensions are not supported. Control frames may occur between the fragments of a message.
 */
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'

const textFrame = 1
const continuation = 0
const maxHeadLength = 14

export class WebSocketTexts {
  readonly #onText: (text: string) => void
  /** Maximum size of a message in bytes; longer messages are skipped. */
  readonly #maxMessage: number
  #head: Buffer = Buffer.alloc(maxHeadLength)
  #headLength = 0
  #payloadLeft = 0
  #mask: Buffer | undefined
  #maskAt = 0
  /** True if the current frame is a text or continuation frame. */
  #isText = false
  #isFinal = false
  /** Payload of the current text message so far. */
  readonly #message = new GrowingBytes()
  #isReading = false

  constructor(onText: (text: string) => void, maxMessage: number) {
    this.#onText = onText
    this.#maxMessage = maxMessage
  }

  push(bytes: Buffer, start: number, end: number): void {
    let at = start
    while (at < end) {
      if (this.#payloadLeft === 0) at = this.#readHead(bytes, at, end)
      else {
        const until = Math.min(end, at + this.#payloadLeft)
        if (this.#isText && this.#isReading) this.#keep(bytes.subarray(at, until))
        this.#payloadLeft -= until - at
        at = until
        if (this.#payloadLeft === 0) this.#endFrame()
      }
    }
  }

  #readHead(bytes: Buffer, start: number, end: number): number {
    let at = start
    while (at < end) {
      this.#head[this.#headLength++] = bytes[at++] ?? 0
      if (this.#headLength >= 2 && this.#headLength === this.#headSize()) {
        this.#startFrame()
        break
      }
    }
    return at
  }

  #headSize(): number {
    const second = this.#head[1] ?? 0
    const length = second & 0x7f
    const extended = length === 126 ? 2 : length === 127 ? 8 : 0
    return 2 + extended + ((second & 0x80) === 0 ? 0 : 4)
  }

  #startFrame(): void {
    const head = this.#head
    const first = head[0] ?? 0
    const second = head[1] ?? 0
    const size = this.#headLength
    const isMasked = (second & 0x80) !== 0
    const short = second & 0x7f
    this.#payloadLeft = short
    if (short === 126) this.#payloadLeft = head.readUInt16BE(2)
    if (short === 127) this.#payloadLeft = Number(head.readBigUInt64BE(2))
    this.#mask = isMasked ? Buffer.from(head.subarray(size - 4, size)) : undefined
    this.#maskAt = 0
    this.#headLength = 0
    this.#isFinal = (first & 0x80) !== 0
    const opcode = first & 0x0f
    if (opcode === textFrame) {
      this.#message.clear()
      this.#isReading = true
    } else if (opcode !== continuation && opcode < 8) this.#isReading = false
    this.#isText = opcode === textFrame || opcode === continuation
    if (this.#payloadLeft === 0) this.#endFrame()
  }

  #keep(part: Buffer): void {
    const start = this.#message.length
    if (start + part.length > this.#maxMessage) {
      this.#isReading = false
      this.#message.clear()
      return
    }
    this.#message.add(part, 0, part.length)
    const mask = this.#mask
    if (mask === undefined) return
    const copy = this.#message.content
    for (let at = start; at < copy.length; at++) {
      copy[at] = (copy[at] ?? 0) ^ (mask[this.#maskAt++ & 3] ?? 0)
    }
  }

  #endFrame(): void {
    if (!this.#isText || !this.#isFinal || !this.#isReading) return
    this.#isReading = false
    const text = this.#message.content.toString('utf8')
    this.#message.clear()
    this.#onText(text)
  }
}
