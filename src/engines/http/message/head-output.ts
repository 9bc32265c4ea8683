import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import { latin1Text } from '../../../ground/base/latin1.ts'

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
  readonly #bytes = new GrowingBytes()

  get text(): string {
    return this.#bytes.latin1
  }

  clear(): void {
    this.#bytes.clear()
  }

  appendText(latin1: string): void {
    this.#bytes.addLatin1(latin1)
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    this.#bytes.add(bytes, start, end)
  }

  /** Appends a field line. */
  appendField(name: string, value: string): void {
    this.appendText(name)
    this.appendText(': ')
    this.appendText(value)
    this.appendText('\r\n')
  }
}
