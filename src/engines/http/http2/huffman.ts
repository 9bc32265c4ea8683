/**
 * The static Huffman code of HPACK (RFC 7541 5.2, appendix B). The code is canonical: codes of equal
 * length are consecutive in the order of their symbols, and shorter codes come first. Therefore the
 * lengths alone define the code, and both tables are computed from them.
 */

/** Length in bits of the code of each byte; the last entry is EOS. */
const codeLengths = [
  [13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28],
  [28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28],
  [6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6],
  [5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10],
  [13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7],
  [7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6],
  [15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5],
  [6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28],
  [20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23],
  [24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24],
  [22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23],
  [21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23],
  [26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25],
  [19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27],
  [20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23],
  [26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26],
  [30],
].flat()

const longest = 30
/** Maximum length in bits of codes that are decoded by one lookup. */
const shortBits = 8

const codes = new Uint32Array(codeLengths.length)
/** Symbol and length (`symbol << 8 | bits`) by the next `shortBits` bits; 0 for longer codes. */
const byPrefix = new Uint16Array(1 << shortBits)
/** For each length: the first code, the index of its symbol in `bySize`, and the number of codes. */
const firstCode = new Uint32Array(longest + 1)
const firstAt = new Uint16Array(longest + 1)
const countOf = new Uint16Array(longest + 1)
const bySize: number[] = []

makeTables()

function makeTables(): void {
  let code = 0
  for (let bits = 1; bits <= longest; bits++) {
    code *= 2
    firstCode[bits] = code
    firstAt[bits] = bySize.length
    for (let symbol = 0; symbol < codeLengths.length; symbol++) {
      if (codeLengths[symbol] !== bits) continue
      codes[symbol] = code
      bySize.push(symbol)
      if (bits <= shortBits) fillPrefixes(code, bits, symbol)
      code++
    }
    countOf[bits] = bySize.length - (firstAt[bits] ?? 0)
  }
}

function fillPrefixes(code: number, bits: number, symbol: number): void {
  const spare = shortBits - bits
  byPrefix.fill((symbol << 8) | bits, code << spare, (code + 1) << spare)
}

const eos = 256

/** Input of the current decoding, with the bits that were read and not used yet. */
const input = { bytes: new Uint8Array(0) as Uint8Array, at: 0, end: 0, window: 0, held: 0 }

/**
 * Decodes bytes [start, end) into `into`, which needs room for 8/5 of their number. Returns the number
 * of bytes written, or -1 if the code is malformed: it contains EOS, or padding that is longer than 7
 * bits or not all ones (RFC 7541 5.2).
 */
export function decodeHuffman(
  bytes: Uint8Array,
  start: number,
  end: number,
  into: Uint8Array,
): number {
  input.bytes = bytes
  input.at = start
  input.end = end
  input.window = 0
  input.held = 0
  let length = 0
  for (;;) {
    fill()
    const known = byPrefix[nextBits()] ?? 0
    const bits = known & 0xff
    if (bits > 0 && bits <= input.held) {
      into[length++] = known >> 8
      input.held -= bits
    } else if (input.at === end && input.held < shortBits) return isPadding() ? length : -1
    else {
      const symbol = longSymbol()
      if (symbol < 0 || symbol === eos) return -1
      into[length++] = symbol
    }
  }
}

function fill(): void {
  while (input.held <= 16 && input.at < input.end) {
    input.window = (input.window << 8) | (input.bytes[input.at++] ?? 0)
    input.held += 8
  }
}

/** The next `shortBits` bits; after the end of the input they are ones. */
function nextBits(): number {
  const { window, held } = input
  if (held >= shortBits) return (window >>> (held - shortBits)) & 0xff
  return ((window << (shortBits - held)) | (0xff >> held)) & 0xff
}

/** Decodes a code of up to 30 bits, more than the window may hold, bit by bit. Returns -1 if none fits. */
function longSymbol(): number {
  let code = 0
  for (let size = 1; size <= longest; size++) {
    if (input.held === 0) {
      if (input.at === input.end) return -1
      fill()
    }
    input.held--
    code = code * 2 + ((input.window >>> input.held) & 1)
    const offset = code - (firstCode[size] ?? 0)
    if (offset < (countOf[size] ?? 0)) return bySize[(firstAt[size] ?? 0) + offset] ?? -1
  }
  return -1
}

function isPadding(): boolean {
  const mask = (1 << input.held) - 1
  return (input.window & mask) === mask
}

/** Number of bytes of the encoded form of Latin-1 text. */
export function huffmanLength(text: string): number {
  let bits = 0
  for (let at = 0; at < text.length; at++) bits += codeLengths[text.charCodeAt(at) & 0xff] ?? 0
  return (bits + 7) >> 3
}

/** Encodes Latin-1 text; the result is Latin-1 text, too. */
export function encodeHuffman(text: string): string {
  let out = ''
  // Up to 7 held bits and a code of up to 30 bits exceed the 32 bits of an integer.
  let window = 0
  let held = 0
  for (let at = 0; at < text.length; at++) {
    const symbol = text.charCodeAt(at) & 0xff
    const bits = codeLengths[symbol] ?? 0
    window = window * 2 ** bits + (codes[symbol] ?? 0)
    held += bits
    while (held >= 8) {
      held -= 8
      const unit = 2 ** held
      const byte = Math.floor(window / unit)
      out += String.fromCharCode(byte)
      window -= byte * unit
    }
  }
  if (held > 0) out += String.fromCharCode((window * 2 ** (8 - held)) | (0xff >> held))
  return out
}
