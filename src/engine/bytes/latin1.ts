type Slice = (this: Buffer, start: number, end: number) => string
type Write = (this: Buffer, text: string, start: number, length: number) => number

interface Latin1Methods {
  latin1Slice?: Slice
  latin1Write?: Write
}

/** What `toString('latin1')` and `write` end in; they look the encoding up first, which takes as long again. */
const { latin1Slice: slice, latin1Write: write } = Buffer.prototype as Latin1Methods

/** Bytes [start, end) as text, one character a byte. */
export function latin1Text(bytes: Buffer, start: number, end: number): string {
  return slice === undefined ? bytes.toString('latin1', start, end) : slice.call(bytes, start, end)
}

/** Longer texts are cheaper to hand to Node. */
const shortText = 32

/** Writes text to where there is room for it, one byte a character. */
export function writeLatin1(bytes: Buffer, text: string, start: number): void {
  const size = text.length
  if (size <= shortText) {
    for (let at = 0; at < size; at++) bytes[start + at] = text.charCodeAt(at)
  } else if (write === undefined) bytes.write(text, start, size, 'latin1')
  else write.call(bytes, text, start, size)
}
