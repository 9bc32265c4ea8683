type Slice = (this: Buffer, start: number, end: number) => string

/** What `toString('latin1')` ends in; it looks the encoding up first, which takes as long again. */
const slice = (Buffer.prototype as { latin1Slice?: Slice }).latin1Slice

/** Bytes [start, end) as text, one character a byte. */
export function latin1Text(bytes: Buffer, start: number, end: number): string {
  return slice === undefined ? bytes.toString('latin1', start, end) : slice.call(bytes, start, end)
}
