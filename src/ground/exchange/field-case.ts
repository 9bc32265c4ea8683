/** Names of fields, compared without regard to the case of ASCII letters (RFC 9110 5.1), without making texts. */

/** Converts a byte or character code of an ASCII letter to lower case. */
export const foldCase = (code: number): number =>
  code >= 0x41 && code <= 0x5a ? code | 0x20 : code

export function isSameName(one: string, other: string): boolean {
  if (one === other) return true
  if (one.length !== other.length) return false
  for (let at = 0; at < one.length; at++) {
    if (foldCase(one.charCodeAt(at)) !== foldCase(other.charCodeAt(at))) return false
  }
  return true
}

/** Returns the text in lower case: the text itself, and no copy, if it has no capital letter of ASCII. */
export function lowerCase(text: string): string {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (foldCase(code) !== code) return text.toLowerCase()
  }
  return text
}
