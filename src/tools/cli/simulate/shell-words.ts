/** Splits a command line into words as a POSIX shell does, with the `$'…'` of bash for copied commands. */

const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  a: '\u0007',
  b: '\b',
  f: '\f',
  v: '\v',
  e: '\u001b',
}

/** One escape in `$'…'`. */
const ansiEscape = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|([\s\S]))/g

/** The parts of words: quoted in four ways, escaped, plain, or white space between words. */
const part =
  /\$'((?:[^'\\]|\\[\s\S])*)'|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\(\r?\n|[\s\S])|([^\s'"\\$]+|\$)|([^\S]+)/y

/** @throws Error with the problem and its offset */
export function shellWords(text: string): string[] {
  const words: string[] = []
  let word: string | undefined
  part.lastIndex = 0
  while (part.lastIndex < text.length) {
    const at = part.lastIndex
    const found = part.exec(text)
    if (found === null) throw new Error(`a quote at offset ${at} is not closed`)
    const [, ansi, single, double, escaped, plain, space] = found
    if (space !== undefined) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (escaped?.endsWith('\n') !== true) {
      word =
        (word ?? '') + (ansiText(ansi) ?? single ?? doubleText(double) ?? escaped ?? plain ?? '')
    }
  }
  return word === undefined ? words : [...words, word]
}

/** In double quotes, a backslash escapes only some characters. */
const doubleText = (text: string | undefined) =>
  text?.replace(/\\(\r?\n|[\s\S])/g, (found, next: string) =>
    next.endsWith('\n') ? '' : /["\\$`]/.test(next) ? next : found,
  )

const ansiText = (text: string | undefined) =>
  text?.replace(ansiEscape, (_, hex?: string, unicode?: string, octal?: string, other?: string) => {
    const code = hex ?? unicode
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16))
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 0xff)
    return escapes[other ?? ''] ?? other ?? ''
  })
