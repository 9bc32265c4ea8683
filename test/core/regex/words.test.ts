import { describe, expect, it } from 'vitest'
import { compileMask, type Mask } from '../../../src/engines/core/regex-mask.ts'
import { Random } from './random-pattern.ts'

const maskOf = (words: readonly string[]): Mask => {
  const outcome = compileMask([{ words, replacement: '<>' }])
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.mask
}

const inWord = /[\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}]/u
const unspaced =
  /[\p{sc=Thai}\p{sc=Lao}\p{sc=Myanmar}\p{sc=Hangul}\p{sc=Khmer}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Bopomofo}\p{sc=Han}\p{sc=Yi}]/u
const isInWord = (character: string | undefined) =>
  character !== undefined && inWord.test(character) && !unspaced.test(character)

/** Whether two characters are equal, as RegExp compares them with simple case folding. */
function isEqual(a: string, b: string): boolean {
  const plain = (character: string) =>
    character
      .replace(/\s|\u0085/u, ' ')
      .replace(/[\u02bc\u2019]/u, "'")
      .replace(/[\u2010\u2011]/u, '-')
  const [first, second] = [plain(a), plain(b)]
  const point = first.codePointAt(0)?.toString(16)
  return first === second || new RegExp(`^\\u{${point}}$`, 'iu').test(second)
}

/** A mask that compares every word at every position. */
function naive(words: readonly string[], text: string): string {
  const characters = [...text]
  const lists = words.map((word) => [...word.trim()]).filter(({ length }) => length > 0)
  let masked = ''
  for (let at = 0; at < characters.length; ) {
    let longest = 0
    for (const word of lists) {
      const end = at + word.length
      const isFound =
        end <= characters.length &&
        word.every((character, i) => isEqual(character, characters[at + i] ?? '')) &&
        !(isInWord(characters[at]) && isInWord(characters[at - 1])) &&
        !(isInWord(characters[end - 1]) && isInWord(characters[end]))
      if (isFound) longest = Math.max(longest, word.length)
    }
    masked += longest > 0 ? '<>' : characters[at]
    at += Math.max(1, longest)
  }
  return masked
}

/** Characters with several cases and sizes, boundaries of words, and scripts without spaces. */
const alphabet = [
  ..."aAnNkKsS\u017f\u212a1_ \t\u00a0-\u2010'\u2019.@éÉ\u0301ßẞåÅ\u212bжЖǅ李さ한กⰀⱥȺ𐐀𐐨",
]
const randomWord = (random: Random, most: number): string =>
  Array.from({ length: 1 + random.below(most) }, () => random.pick(alphabet)).join('')

describe('lists of words', () => {
  it('find what a comparison at every position finds, wherever a stream is cut', () => {
    const random = new Random(Number(process.env.SLUICE_FUZZ_SEED ?? 4747))
    for (let round = 0; round < 1500; round++) {
      const words = Array.from({ length: 1 + random.below(8) }, () => randomWord(random, 5))
      const parts = Array.from({ length: random.below(14) }, () =>
        random.below(2) === 0 ? random.pick(words) : randomWord(random, 3),
      )
      const text = parts.join(random.pick(['', ' ', '.']))
      const expected = naive(words, text)
      const about = JSON.stringify({ words, text })
      using mask = maskOf(words)
      expect(mask.apply(text).text, about).toBe(expected)
      const bytes = Buffer.from(text)
      using stream = mask.stream()
      const out: Uint8Array[] = []
      for (let at = 0; at < bytes.length; ) {
        const end = at + 1 + random.below(random.pick([1, 4, 40]))
        out.push(stream.pushBytes(bytes.subarray(at, end)))
        expect(stream.heldBytes, about).toBeLessThanOrEqual(mask.holdBytes ?? 0)
        at = end
      }
      out.push(stream.endBytes())
      expect(Buffer.concat(out).toString(), about).toBe(expected)
    }
  })

  it('are found without any white space around them', () => {
    using mask = maskOf(['Acme\u00a0', '\u2003Osprey\u3000', '\ufeffAnn', '\u00a0\u00a0'])
    expect(mask.apply('Acme, (Osprey), Ann. \u00a0\u00a0').text).toBe('<>, (<>), <>. \u00a0\u00a0')
  })
})
