import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lowerCaseName } from './field-names.ts'

const nameOf = (text: string) => {
  const bytes = Buffer.from(`: ${text}: `, 'latin1')
  return lowerCaseName(bytes, 2, 2 + text.length)
}

describe('names of fields', () => {
  it('are the text of the bytes in lower case, whatever names came before', () => {
    const name = fc.stringMatching(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,12}$/)
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 50 }), (names) => {
        for (const one of [...names, ...names]) expect(nameOf(one)).toBe(one.toLowerCase())
      }),
    )
  })

  it('differ for bytes that differ in more than the case of letters', () => {
    // The characters of each pair differ only in the bit that distinguishes upper from lower case.
    for (const [one, other] of ['^~', '@`', 'Aa', '[{', '\x0d-'].map((pair) => [...pair])) {
      expect([nameOf(`x${one}`), nameOf(`x${other}`)]).toEqual([
        `x${one?.toLowerCase()}`,
        `x${other?.toLowerCase()}`,
      ])
    }
  })
})
