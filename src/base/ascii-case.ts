/** Returns the text in lower case: the text itself, and no copy, if it has no capital letter of ASCII. */
export function lowerCase(text: string): string {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code >= 0x41 && code <= 0x5a) return text.toLowerCase()
  }
  return text
}
