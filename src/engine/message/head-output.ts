import { latin1Text } from '../bytes/latin1.ts'

/** The fields that frame a message. `as-is`: those that came with it. A number: Content-Length. */
export type FramingFields = 'as-is' | 'none' | 'chunked' | number

/** Where a head is written, piece by piece; pieces are copied. */
export interface HeadOutput {
  /** Latin-1 text. */
  appendText(latin1: string): void
  appendBytes(bytes: Buffer, start: number, end: number): void
}

/** A head as text. */
export class HeadText implements HeadOutput {
  text = ''

  appendText(latin1: string): void {
    this.text += latin1
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    this.text += latin1Text(bytes, start, end)
  }
}
