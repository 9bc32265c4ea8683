/** Parses JSON whose values are written again for another reader. */
import { backslash, closeBrace, closeBracket, openBrace, openBracket, quote } from './syntax.ts'

/** Matches integers that may exceed 2^53, and exponents that may exceed the range of a double. */
const longNumber = /(?<![\d.])\d{16}|\d[eE]\+?\d{3}/

/** Returns true if the text may contain numbers that a double cannot represent. */
export const hasLongNumbers = (text: string): boolean => longNumber.test(text)

/** Maximum depth of JSON that is read. JSON.stringify and walks through a value would exhaust the stack. */
export const maxJsonDepth = 1000

/** Returns true if lists and objects of JSON are nested deeper than `maxJsonDepth`. */
export function isTooDeep(text: string): boolean {
  if (text.length <= maxJsonDepth) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at)
        break
      case openBracket:
      case openBrace:
        depth++
        if (depth > maxJsonDepth) return true
        break
      case closeBracket:
      case closeBrace:
        depth--
    }
  }
  return false
}

/** Returns the offset of the quote that ends the string at `start`, or of the end of the text. */
export function endOfString(text: string, start: number): number {
  let end = start
  for (;;) {
    end = text.indexOf('"', end + 1)
    if (end < 0) return text.length
    let slashes = end - 1
    while (text.charCodeAt(slashes) === backslash) slashes--
    if ((end - slashes) % 2 === 1) return end
  }
}

/**
 * Parses JSON; undefined if the text is not JSON, or nested too deeply. Most values are written again for another reader,
 * so numbers that a double cannot represent, such as ids and 64-bit limits in tool schemas, keep
 * their text (`JSON.rawJSON`). `numberAt` treats them as absent.
 */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) return undefined
  try {
    return hasLongNumbers(text) ? JSON.parse(text, keepExact) : JSON.parse(text)
  } catch {
    return undefined
  }
}

function keepExact(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== 'number' || source === undefined) return value
  const isKept = Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value)
  return isKept ? value : JSON.rawJSON(source)
}
