import { describe, expect, it } from 'vitest'
import { maskTexts } from './parts-masker.ts'
import { compileGuardMask } from './regex-guard.ts'

const mask = compileGuardMask({
  matches: ['sécret-[0-9]+', 'top secret', 'key: ?[a-z]{3,}'],
  builtins: ['Ssn', 'Email', 'CreditCard', 'PhoneNumber'],
})

const textsOf = (...texts: string[]) => maskTexts(mask, texts).texts

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

  it.each([
    ['bob@example.com 4111 1111 1111 1111', '<EMAIL_ADDRESS> <CREDIT_CARD>'],
    ['sécret-42😀 top secret', '<masked>😀 <masked>'],
    ['12.3-45-6789 +1 (415) 555-0132.', '12.3-45-6789 <PHONE_NUMBER>.'],
  ])('masks %s wherever it is split', (text, masked) => {
    expect(mask.apply(text).text).toBe(masked)
    for (let first = 0; first <= text.length; first++) {
      for (let second = first; second <= text.length; second++) {
        const parts = [text.slice(0, first), text.slice(first, second), text.slice(second)]
        const joined = textsOf(...parts).join('')
        // Parts that end within a surrogate pair have no valid text there.
        if (parts.every((part) => part.isWellFormed())) expect(joined, `${parts}`).toBe(masked)
        expect(maskTexts(mask, parts).count).toBeGreaterThan(0)
      }
    }
  })
})
