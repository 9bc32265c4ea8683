import { describe, expect, it } from 'vitest'
import { ambiguous, credentialsOf, none } from './authorization-header.ts'

const read = (value: string | readonly string[] | undefined, scheme: 'basic' | 'bearer') =>
  credentialsOf({ lines: () => value }, scheme)

describe('credentials in the Authorization field', () => {
  it.each([
    ['a space', 'Bearer abc'],
    ['several spaces', 'bearer    abc'],
    ['a tab', 'Bearer\tabc'],
    ['tabs and spaces', 'BEARER \t abc\t'],
    ['a no-break space', 'Bearer\xa0abc'],
    ['a next-line character', 'Bearer\x85abc'],
  ])('are found after %s', (_, value) => {
    expect(read(value, 'bearer')).toBe('abc')
    expect(read(value, 'basic')).toBe(none)
    expect(read(value.replace(/bearer/i, 'Basic'), 'basic')).toBe('abc')
  })

  it('are found after leading white space of Latin-1', () => {
    expect(read('\xa0Bearer abc', 'bearer')).toBe('abc')
  })

  it('keep white space inside, which makes them invalid', () => {
    expect(read('Bearer a\tb', 'bearer')).toBe('a\tb')
  })

  it.each([undefined, '', 'Bearer', 'Bearer ', 'Bearerabc', 'Bearer-x abc', 'Basic abc'])(
    'are missing in %j',
    (value) => expect(read(value, 'bearer')).toBe(none),
  )

  it('are ambiguous in several fields', () => {
    expect(read(['Bearer a', 'Bearer b'], 'bearer')).toBe(ambiguous)
  })
})
