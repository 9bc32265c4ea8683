import { latin1Text, writeLatin1 } from '../bytes/latin1.ts'

/** The fields that frame a message. `as-is` keeps the received ones; a number is the Content-Length. */
export type FramingFields = 'as-is' | 'none' | 'chunked' | number

/** Receives a head in pieces, which it copies. */
export interface HeadOutput {
  /** Appends Latin-1 text. */
  appendText(latin1: string): void
  appendBytes(bytes: Buffer, start: number, end: number): void
}

/** Collects a head as text. */
export class HeadText implements HeadOutput {
  text = ''

  appendText(latin1: string): void {
    this.text += latin1
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    this.text += latin1Text(bytes, start, end)
  }
}

/** Collects a head in a buffer of its own, so that its text is flat from the start. May be used again. */
export class FlatHead implements HeadOutput {
  #bytes = Buffer.allocUnsafeSlow(4096)
  #length = 0

  get text(): string {
    return latin1Text(this.#bytes, 0, this.#length)
  }

  clear(): void {
    this.#length = 0
  }

  appendText(latin1: string): void {
    this.#makeRoom(latin1.length)
    writeLatin1(this.#bytes, latin1, this.#length)
    this.#length += latin1.length
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    this.#makeRoom(end - start)
    this.#length += bytes.copy(this.#bytes, this.#length, start, end)
  }

  /** Appends a field line. */
  appendField(name: string, value: string): void {
    this.appendText(name)
    this.appendText(': ')
    this.appendText(value)
    this.appendText('\r\n')
  }

  #makeRoom(size: number): void {
    const length = this.#length + size
    if (length <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(2 * length)
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
