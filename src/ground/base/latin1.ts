type Slice = (this: Buffer, start: number, end: number) => string
type Write = (this: Buffer, text: string, start: number, length: number) => number

interface Latin1Methods {
  latin1Slice?: Slice
  latin1Write?: Write
}

/**
 * The methods behind `toString('latin1')` and `write`, without the slow lookup of the encoding. Hosts of the core other
 * than Node may have neither them nor a prototype.
 */
const { latin1Slice: slice, latin1Write: write } = (Buffer.prototype ?? {}) as Latin1Methods

/** Reads bytes [start, end) as Latin-1 text, one character per byte. */
export function latin1Text(bytes: Buffer, start: number, end: number): string {
  return slice === undefined ? bytes.toString('latin1', start, end) : slice.call(bytes, start, end)
}

/** Maximum length of a text that is written faster by a loop than by Node. */
const shortText = 32

/** Writes text with one byte per character. The caller makes sure that there is room. */
export function writeLatin1(bytes: Buffer, text: string, start: number): void {
  const size = text.length
  if (size <= shortText) {
    for (let at = 0; at < size; at++) bytes[start + at] = text.charCodeAt(at)
  } else if (write === undefined) bytes.write(text, start, 'latin1')
  else write.call(bytes, text, start, size)
}
