import { describe, expect, it } from 'vitest'
import * as abi from './abi.ts'
import { checkRegex, compileRegex, type Regex, type RegexOptions } from './regex.ts'
import { regexProblem } from './regex-problem.ts'

function compiled(source: string, options?: RegexOptions): Regex {
  const outcome = compileRegex(source, options)
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.regex
}

describe('compileRegex', () => {
  it('matches and finds in strings and in bytes', () => {
    using regex = compiled('b+')
    expect(regex.isMatch('abbc')).toBe(true)
    expect(regex.isMatch(Buffer.from('ac'))).toBe(false)
    expect(regex.fullMatch('bbb')).toBe(true)
    expect(regex.fullMatch('bbbc')).toBe(false)
    expect(regex.find('abbcb')).toEqual({ start: 1, end: 3 })
    expect(regex.find('ac')).toBeUndefined()
    expect(regex.findAll(Buffer.from('ébb'))).toEqual([{ start: 2, end: 4 }])
  })

  it('returns string positions as JavaScript does', () => {
    using regex = compiled('x|é')
    const text = 'é😀x\ud800x☃é'
    const expected = [...text.matchAll(/x|é/gu)].map(({ index }) => ({
      start: index,
      end: index + 1,
    }))
    expect(regex.findAll(text)).toEqual(expected)
  })

  it('treats lone surrogates as the replacement character', () => {
    using regex = compiled('\\x{FFFD}')
    expect(regex.findAll('a\udc00b')).toEqual([{ start: 1, end: 2 }])
  })

  it('finds more matches than one call of the core returns', () => {
    using letters = compiled('a')
    expect(letters.findAll('a'.repeat(1000))).toHaveLength(1000)
    using nothing = compiled('')
    const text = '☃'.repeat(600)
    expect(nothing.findAll(text)).toEqual(
      [...text.matchAll(/(?:)/gu)].map(({ index }) => ({ start: index, end: index })),
    )
  })

  it('applies its options', () => {
    using folded = compiled('straße', { caseInsensitive: true })
    expect(folded.isMatch('STRAßE')).toBe(true)
    using lines = compiled('^b.', { multiLine: true, dotAll: true })
    expect(lines.find('a\nb\n')).toEqual({ start: 2, end: 4 })
    using small = compiled('a', { matchOnly: true })
    expect(small.isMatch('ba')).toBe(true)
    expect(() => small.find('ba')).toThrow('REGEX_NO_SPANS')
  })

  it('searches texts of several megabytes', () => {
    using regex = compiled('needle')
    const text = `${'hay '.repeat(1_500_000)}needle`
    expect(regex.find(text)).toEqual({ start: 6_000_000, end: 6_000_006 })
  })

  it('reports the problem of a pattern and its position', () => {
    expect(compileRegex('é😀(?=a)')).toEqual({
      ok: false,
      code: abi.REGEX_LOOKAROUND,
      offset: 3,
      message: 'look-around is not supported: it cannot be matched in linear time (at character 3)',
    })
  })

  it('throws if it is used after it is disposed', () => {
    const regex = compiled('a')
    regex.dispose()
    regex.dispose()
    expect(() => regex.isMatch('a')).toThrow('disposed')
  })
})

describe('checkRegex', () => {
  it('accepts valid patterns, and reports the position of a problem', () => {
    expect(checkRegex('/api/v[0-9]+/.*')).toEqual({ ok: true })
    expect(checkRegex('')).toEqual({ ok: true })
    expect(checkRegex('(a')).toMatchObject({ ok: false, offset: 0 })
    expect(checkRegex('a**')).toMatchObject({ ok: false, offset: 2 })
  })

  it('has a readable message for every error code', () => {
    const codes = Object.entries(abi).filter(
      ([name, code]) => name.startsWith('REGEX_') && code <= -102 && code !== abi.REGEX_NO_SPANS,
    )
    expect(codes.length).toBeGreaterThan(15)
    for (const [, code] of codes) {
      expect(regexProblem('a', code, 0).message).toMatch(/^[^_]+ \(at character 1\)$/)
    }
  })
})
