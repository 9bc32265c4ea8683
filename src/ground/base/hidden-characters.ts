/** Characters that people do not see in a text, but that models read. */

/**
 * Format characters (zero width, bidirectional controls, tags), controls but for white space, variation selectors, and
 * letters without a shape.
 */
const hidden =
  /(?![\t\n\r])(?:[\p{Cf}\p{Cc}\p{Zl}\p{Zp}\p{Co}\p{Variation_Selector}\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]|\u034f)/gu

/** Emoji are written with these, which then change only how they look. */
const ofEmoji = /\p{Extended_Pictographic}(?:\ufe0f|\u200d)+/gu

/** Number of hidden characters in a text. */
export function countHidden(text: string): number {
  return text.replace(ofEmoji, '').match(hidden)?.length ?? 0
}

/** Writes hidden characters as `\u{200B}`. */
export const showHidden = (text: string): string =>
  text.replace(hidden, (one) => `\\u{${codeOf(one).toString(16).toUpperCase()}}`)

const codeOf = (character: string): number => character.codePointAt(0) ?? 0

/** Text in tag characters (U+E0020 to U+E007E), which models read as ASCII; empty if there is none. */
export const taggedText = (text: string): string =>
  (text.match(/[\u{e0020}-\u{e007e}]/gu) ?? [])
    .map((one) => String.fromCodePoint(codeOf(one) - 0xe0000))
    .join('')
