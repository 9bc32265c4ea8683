/** Reads literals in quotes: strings and bytes, raw or with escapes. */
import { BadSyntax } from './problem.ts'

interface Quoted {
  readonly value: string | Uint8Array
  /** Offset in the source at which the literal ends. */
  readonly end: number
}

/** `prefix` is everything before the content: letters and quotes. `at` is where it starts. */
export function readQuoted(source: string, at: number, prefix: string, quotes: string): Quoted {
  const letters = prefix.slice(0, prefix.length - quotes.length).toLowerCase()
  const isRaw = letters.includes('r')
  const isBytes = letters.includes('b')
  const start = at + prefix.length
  const close = findClose(source, start, quotes, isRaw)
  if (close < 0) throw new BadSyntax(at, 'the quotes are not closed')
  const content = source.slice(start, close)
  const end = close + quotes.length
  if (isRaw) return { value: isBytes ? Buffer.from(content) : content, end }
  const parts = readEscapes(content, start, isBytes)
  if (isBytes) return { value: Buffer.concat(parts.map((part) => Buffer.from(part))), end }
  return { value: parts.join(''), end }
}

/** Finds the closing quotes, on the same line unless they are triple. Skips escapes unless `isRaw` is set. */
function findClose(source: string, start: number, quotes: string, isRaw: boolean): number {
  for (let at = start; at < source.length; at++) {
    if (source.startsWith(quotes, at)) return at
    const char = source[at]
    if (quotes.length === 1 && (char === '\n' || char === '\r')) return -1
    if (char === '\\' && !isRaw) at++
  }
  return -1
}

const simple: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '?': '?',
  '"': '"',
  "'": "'",
  '`': '`',
}

const numeric = /[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})/y

/** Returns the parts of the content: strings, and bytes for numeric escapes in a bytes literal. */
function readEscapes(content: string, start: number, isBytes: boolean): (string | Uint8Array)[] {
  const parts: (string | Uint8Array)[] = []
  let from = 0
  for (let at = content.indexOf('\\'); at >= 0; at = content.indexOf('\\', from)) {
    parts.push(content.slice(from, at))
    const char = content[at + 1] ?? ''
    const plain = Object.hasOwn(simple, char) ? simple[char] : undefined
    if (plain !== undefined) {
      parts.push(plain)
      from = at + 2
      continue
    }
    numeric.lastIndex = at + 1
    const found = numeric.exec(content)
    const part = found === null ? undefined : numericPart(found, isBytes)
    if (found === null || part === undefined) {
      throw new BadSyntax(start + at, `there is no escape \\${char}`)
    }
    parts.push(part)
    from = numeric.lastIndex
  }
  parts.push(content.slice(from))
  return parts
}

/** Decodes a numeric escape; undefined if it is invalid, such as `\u` in bytes, which have no code points. */
function numericPart(found: RegExpExecArray, isBytes: boolean): string | Uint8Array | undefined {
  const [, byte, short, long, octal] = found
  const isCodePoint = short !== undefined || long !== undefined
  if (isCodePoint && isBytes) return undefined
  const code =
    octal === undefined
      ? Number.parseInt(byte ?? short ?? long ?? '', 16)
      : Number.parseInt(octal, 8)
  if (isBytes) return Uint8Array.of(code)
  const isSurrogate = code >= 0xd800 && code <= 0xdfff
  return code > 0x10ffff || isSurrogate ? undefined : String.fromCodePoint(code)
}
