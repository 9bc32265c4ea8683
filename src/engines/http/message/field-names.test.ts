import { describe, expect, it } from 'vitest'
import fc from '../../../../test/support/fast-check.ts'
import { fieldName } from './field-names.ts'

const nameOf = (text: string) => {
  const bytes = Buffer.from(`: ${text}: `, 'latin1')
  return fieldName(bytes, 2, 2 + text.length)
}

describe('names of fields', () => {
  it('are the text of the bytes and its lower case, whatever names came before', () => {
    const name = fc.stringMatching(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,50}$/)
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 50 }), (names) => {
        for (const text of [...names, ...names]) {
          expect(nameOf(text)).toEqual({ text, lower: text.toLowerCase() })
        }
      }),
    )
  })
})
