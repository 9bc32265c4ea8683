/** Decodes the bytes of a manifest, and splits it into JSON texts. */

/** Where and why bytes are not valid text. */
interface DecodingProblem {
  readonly line: number
  readonly message: string
}

const byteOrderMarks: readonly (readonly [mark: readonly number[], encoding: string])[] = [
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
]

/**
 * Decodes UTF-8, or UTF-16 with a byte order mark (YAML 1.2, 5.2), and removes the mark. Other encodings are
 * refused, since guessing could change names and secrets silently.
 */
export function decodeManifest(bytes: Uint8Array): string | DecodingProblem {
  const isMarked = (mark: readonly number[]) => mark.every((byte, at) => bytes[at] === byte)
  const encoding = byteOrderMarks.find(([mark]) => isMarked(mark))?.[1] ?? 'utf-8'
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes)
    const nul = text.indexOf('\0')
    if (nul < 0) return text
    const line = text.slice(0, nul).split('\n').length
    return { line, message: 'not text: it holds a NUL character' }
  } catch {
    return { line: undecodableLine(bytes), message: `not text in ${encoding.toUpperCase()}` }
  }
}

/** Number of the first line that is not valid UTF-8. */
function undecodableLine(bytes: Uint8Array): number {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let start = 0
  for (let line = 1; start < bytes.length; line++) {
    const end = bytes.indexOf(0x0a, start)
    try {
      decoder.decode(bytes.subarray(start, end < 0 ? bytes.length : end))
    } catch {
      return line
    }
    if (end < 0) break
    start = end + 1
  }
  return 1
}

/** A part of a text with its offset in the text. */
interface TextPiece {
  readonly text: string
  readonly start: number
}

/**
 * Splits concatenated JSON objects (output of `jq`, or of several `kubectl get -o json`; JSON lines), which
 * are not valid YAML. Returns an empty list for any other text.
 */
export function jsonTexts(text: string): TextPiece[] {
  const pieces: TextPiece[] = []
  let depth = 0
  let start = 0
  // Strings are matched whole, so that braces in them are ignored.
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]|[^\s{}"]+/g)) {
    if (token === '{') {
      if (depth === 0) start = index
      depth++
    } else if (token === '}') {
      depth--
      if (depth < 0) return []
      if (depth === 0) pieces.push({ text: text.slice(start, index + 1), start })
    } else if (depth === 0) return []
  }
  return depth === 0 ? pieces : []
}
