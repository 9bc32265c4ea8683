import { latin1Text } from '../bytes/latin1.ts'

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
