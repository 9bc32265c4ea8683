import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { regexProblem } from '../../../src/engines/core/regex-problem.ts'
import { bytesOfCase, type CaseText } from '../case-files.ts'
import { codeOf, type Pair, RawRegex } from './raw-regex.ts'

interface MatchCase extends CaseText {
  readonly name: string
  readonly pattern: string
  /** All matches, in bytes. */
  readonly spans: readonly Pair[]
  readonly full?: boolean
}

interface RefusedCase {
  readonly pattern: string
  readonly code: string
  /** In bytes of the pattern. */
  readonly offset: number
  /** For the author of the pattern; characters are code points, from 1. */
  readonly message: string
}

const folder = join(import.meta.dirname, 'cases')
const read = <Case>(file: string): Case[] => JSON.parse(readFileSync(join(folder, file), 'utf8'))
const raw = new RawRegex(1 << 17)

for (const file of readdirSync(folder).filter((name) => name !== 'refused.json')) {
  describe(`regex cases of ${file}`, () => {
    it.each(read<MatchCase>(file))('$name: $pattern', (example) => {
      const handle = raw.compile(Buffer.from(example.pattern))
      expect(handle).toBeGreaterThan(0)
      const text = bytesOfCase(example)
      expect(raw.spans(handle, text)).toEqual(example.spans)
      expect(raw.isMatch(handle, text)).toBe(example.spans.length > 0)
      if (example.full !== undefined) expect(raw.fullMatch(handle, text)).toBe(example.full)
      raw.free(handle)
    })
  })
}

describe('patterns that the regex compiler refuses', () => {
  it.each(read<RefusedCase>('refused.json'))('$pattern is $code at $offset', (example) => {
    const code = raw.compile(Buffer.from(example.pattern))
    const offset = raw.core.exports.last_error_offset()
    expect({ code, offset }).toEqual({ code: codeOf(example.code), offset: example.offset })
    expect(regexProblem(example.pattern, code, offset).message).toBe(example.message)
  })

  it('reports a pattern that is too long, nested too deeply or not UTF-8', () => {
    expect(raw.compile(Buffer.from('a'.repeat(8193)))).toBe(codeOf('REGEX_PATTERN_TOO_LONG'))
    expect(raw.compile(Buffer.from('a'.repeat(8192)))).toBeGreaterThan(0)
    const nested = (depth: number) => Buffer.from(`${'('.repeat(depth)}a${')'.repeat(depth)}`)
    expect(raw.compile(nested(201))).toBe(codeOf('REGEX_NESTED_TOO_DEEP'))
    expect(raw.compile(nested(200))).toBeGreaterThan(0)
    expect(raw.compile(Buffer.from([97, 0xff]))).toBe(codeOf('REGEX_BAD_UTF8'))
    expect(raw.core.exports.last_error_offset()).toBe(1)
  })
})
