/**
 * Escapes of texts from elsewhere, so that a terminal shows them instead of obeying them. The escape is that of
 * JSON, so that output in JSON stays valid.
 */

/** Control characters, line separators, and characters that change the direction of the text around them. */
const unprintable = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
const unprintableInLines = new RegExp(`(?![\\t\\n])${unprintable.source}`, 'gu')

const escaped = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Escapes a part of one line, such as a name: line breaks too. */
export const printable = (text: string): string => text.replace(unprintable, escaped)

/** Escapes whole output: tabs and line breaks stay. */
export const printableLines = (text: string): string => text.replace(unprintableInLines, escaped)
