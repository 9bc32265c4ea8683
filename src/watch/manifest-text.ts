/** The bytes of a manifest as text, and the texts of which it consists. */

/** What is wrong with bytes that are no text, and in which line. */
interface NoText {
  readonly line: number
  readonly message: string
}

const marks: readonly (readonly [mark: readonly number[], encoding: string])[] = [
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
]

/**
 * UTF-8, or UTF-16 with its byte order mark, as YAML 1.2 (5.2) has it; a mark is taken off. Bytes in
 * another encoding are refused, since guessing would change names and secrets in silence.
 */
export function decodeManifest(bytes: Uint8Array): string | NoText {
  const isMarked = (mark: readonly number[]) => mark.every((byte, at) => bytes[at] === byte)
  const encoding = marks.find(([mark]) => isMarked(mark))?.[1] ?? 'utf-8'
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

/** The first line of bytes that is not UTF-8. */
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

/** A piece of a text, and where it begins in it. */
interface TextPiece {
  readonly text: string
  readonly start: number
}

/**
 * The objects of JSON texts one after another (`jq`, `kubectl get -o json` of several, JSON lines),
 * which is no YAML. Gives nothing where it is something else.
 */
export function jsonTexts(text: string): TextPiece[] {
  const pieces: TextPiece[] = []
  let depth = 0
  let start = 0
  // Strings whole, so that braces in them count for nothing.
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
