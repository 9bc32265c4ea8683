import { describe, expect, it } from 'vitest'
import { maskTexts, PartsMasker } from './parts-masker.ts'
import { compileGuardMask } from './regex-guard.ts'

const mask = compileGuardMask({
  matches: ['sécret-[0-9]+', 'top secret', 'key: ?[a-z]{3,}'],
  builtins: ['Ssn', 'Email', 'CreditCard', 'PhoneNumber'],
})

const textsOf = (...texts: string[]) => maskTexts(mask, texts).texts

/** Pushes every part in pieces of a size. */
function streamed(texts: readonly string[], size: number): string[] {
  const parts = ['']
  const masker = new PartsMasker(mask, {
    text: (text) => parts.push((parts.pop() ?? '') + text),
    endPart: () => parts.push(''),
  })
  for (const [at, text] of texts.entries()) {
    if (at > 0) masker.endPart()
    for (let from = 0; from < text.length; from += size) masker.push(text.slice(from, from + size))
  }
  masker.end()
  masker.dispose()
  return parts
}

describe('masking a text in several parts', () => {
  it.each([
    ['a match over two parts', ['It is 123-45', '-6789.'], ['It is <SSN>', '.']],
    ['a match over four parts', ['12', '3-45', '-67', '89 is it'], ['<SSN>', '', '', ' is it']],
    ['a match that continues in the next part', ['sécret-12', '345, ok'], ['<masked>', ', ok']],
    [
      'a match that the next part would break',
      ['it is 123-45-6789', '12 apples'],
      ['it is <SSN>', '12 apples'],
    ],
    ['a match with a space at the border', ['top', 'secret'], ['<masked>', '']],
    [
      'a match that begins at a border',
      ['mail: ', 'bob@example.com'],
      ['mail: ', '<EMAIL_ADDRESS>'],
    ],
    ['parts without a text', ['123-45', '', '-6789', ''], ['<SSN>', '', '', '']],
    ['parts without a match', ['a', 'b', 'c'], ['a', 'b', 'c']],
    [
      'several matches',
      ['a@b.cd, 123-45', '-6789, a@', 'b.cd'],
      ['<EMAIL_ADDRESS>, <SSN>', ', <EMAIL_ADDRESS>', ''],
    ],
  ])('masks %s', (_, texts, masked) => {
    expect(textsOf(...texts)).toEqual(masked)
  })

  it('does not match a placeholder again', () => {
    const upper = compileGuardMask({ matches: ['[A-Z]{3,}'], builtins: ['Ssn'] })
    expect(maskTexts(upper, ['123-45', '-6789 ABC', ' x']).texts).toEqual([
      '<SSN>',
      ' <masked>',
      ' x',
    ])
    upper.dispose()
  })

  it('gives the same result however the text is split into parts', () => {
    const words = [
      'bob@example.com',
      ' 4111 1111 1111 1111',
      'sécret-42',
      ' top',
      ' ',
      'secret',
      '😀',
      '+1 (415) 555-0132',
      'key: abcdef',
      '.',
      '12',
      '3-45-6789 ',
    ]
    let seed = 7
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed % below
    }
    for (let round = 0; round < 300; round++) {
      const text = Array.from({ length: 6 }, () => words[random(words.length)]).join('')
      const cuts = Array.from({ length: 1 + random(4) }, () => random(text.length)).sort(
        (a, b) => a - b,
      )
      const texts = [0, ...cuts].map((from, at) => text.slice(from, cuts[at] ?? text.length))
      const whole = textsOf(...texts)
      expect(streamed(texts, 1), JSON.stringify(texts)).toEqual(whole)
      expect(streamed(texts, 3), JSON.stringify(texts)).toEqual(whole)
      // What is masked in one piece is masked in parts too.
      expect(textsOf(text)).toEqual([mask.apply(text).text])
      expect(streamed([text], 2)).toEqual([mask.apply(text).text])
    }
  })
})
