import { describe, expect, it } from 'vitest'
import { compileMask } from '../../../src/engines/core/regex-mask.ts'
import { codeOf, RawRegex } from './raw-regex.ts'

// Counted in the engine's own units of work, not in time.
const raw = new RawRegex(1 << 18)

interface Adversary {
  readonly name: string
  readonly pattern: string
  readonly text: (length: number) => string
}

/** Letters a and b without a short period. */
function scrambled(length: number): string {
  let state = 7
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return (state >>> 16) & 1 ? 'a' : 'b'
  }).join('')
}

const email = '[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}'
const adversaries: readonly Adversary[] = [
  { name: 'nested repetitions', pattern: '(a+)+$', text: (n) => `${'a'.repeat(n - 1)}!` },
  { name: 'ambiguous alternatives', pattern: '(a|a)*b', text: (n) => 'a'.repeat(n) },
  { name: 'adjacent repetitions', pattern: '(x+x+)+y', text: (n) => 'x'.repeat(n) },
  { name: 'many optional letters', pattern: '(?:a?){30}a{30}', text: (n) => 'a'.repeat(n) },
  {
    name: 'nested empty repetitions',
    pattern: '(?:(?:(?:a*)*|b?)*)*c',
    text: (n) => 'ab'.repeat(n / 2),
  },
  { name: 'digits', pattern: '\\b(?:\\d[ -]?){12,18}\\d\\b', text: (n) => '1'.repeat(n) },
  { name: 'at signs', pattern: email, text: (n) => '@'.repeat(n) },
  { name: 'letters and at signs', pattern: email, text: (n) => 'a@'.repeat(n / 2) },
  { name: 'dots', pattern: '.*.*.*=.*', text: (n) => 'a'.repeat(n) },
  { name: 'more states than a cache', pattern: '[ab]*a[ab]{14}c', text: scrambled },
  { name: 'words of other scripts', pattern: '\\pL+\\d', text: (n) => 'é日'.repeat(n / 5) },
]

describe('the work of regex matching grows linearly with the text', () => {
  it.each(adversaries)('$name: $pattern', ({ pattern, text }) => {
    const handle = raw.compile(Buffer.from(pattern))
    expect(handle).toBeGreaterThan(0)
    const workOn = (length: number) => {
      const bytes = Buffer.from(text(length))
      const before = raw.work()
      raw.isMatch(handle, bytes)
      raw.fullMatch(handle, bytes)
      raw.spans(handle, bytes)
      return raw.work() - before
    }
    workOn(20_000)
    const small = workOn(50_000)
    const large = workOn(200_000)
    expect(large).toBeLessThan(small * 4.4)
    expect(large).toBeLessThan(200_000 * 150)
    raw.free(handle)
  })

  it('finds the same matches without a cache as with one', () => {
    // More regexes than caches, each on a short text: the last ones are simulated.
    const handles = Array.from({ length: 60 }, (_, i) => raw.compile(Buffer.from(`x{${i}}y|z+`)))
    for (const [i, handle] of handles.entries()) {
      const text = Buffer.from(`${'x'.repeat(i)}y zz`)
      expect(raw.spans(handle, text).at(-1)).toEqual([text.length - 2, text.length])
      expect(raw.fullMatch(handle, text.subarray(0, i + 1))).toBe(true)
      expect(raw.fullMatch(handle, text)).toBe(false)
    }
    for (const handle of handles) raw.free(handle)
  })
})

describe('a pattern that scans to the end of the text after each of many matches', () => {
  const handle = raw.compile(Buffer.from('a.*b|a'))

  it('finds all matches in a text of moderate length', () => {
    expect(raw.spans(handle, Buffer.from('a'.repeat(2000)))).toHaveLength(2000)
  })

  it('fails with REGEX_TOO_MUCH_WORK before the work grows with the square of the text', () => {
    const before = raw.work()
    const text = Buffer.from('a'.repeat(200_000))
    expect(() => raw.spans(handle, text)).toThrow(String(codeOf('REGEX_TOO_MUCH_WORK')))
    expect(raw.work() - before).toBeLessThan(text.length * 300)
    expect(raw.isMatch(handle, text)).toBe(true)
  })

  it('makes a mask fail, so that no text passes unmasked', () => {
    const outcome = compileMask([{ pattern: 'a.*b|a', replacement: 'x' }])
    if (!outcome.ok) throw new Error(outcome.message)
    expect(outcome.mask.apply('a'.repeat(1000)).text).toBe('x'.repeat(1000))
    expect(() => outcome.mask.apply('a'.repeat(200_000))).toThrow('REGEX_TOO_MUCH_WORK')
    expect(outcome.mask.apply('ab').text).toBe('x')
  })
})

describe('a regex engine whose memory cannot grow', () => {
  it('reports an error once its memory is full, and continues to match compiled patterns', () => {
    const sealed = new RawRegex(1 << 12)
    sealed.core.run('reserve', (exports) => exports.reserve(40))
    sealed.core.exports.seal()
    const handles: number[] = []
    for (;;) {
      const handle = sealed.compile(Buffer.from(`/api/v[0-9]+/item${handles.length}/[^/]+`))
      if (handle < 0) {
        expect(handle).toBe(-2)
        break
      }
      handles.push(handle)
    }
    expect(handles.length).toBeGreaterThan(100)
    for (const [i, handle] of handles.entries()) {
      expect(sealed.fullMatch(handle, Buffer.from(`/api/v1/item${i}/x`))).toBe(true)
      expect(sealed.fullMatch(handle, Buffer.from(`/api/v1/item${i}/x/`))).toBe(false)
    }
    const freed = handles.pop() ?? 0
    sealed.free(freed)
    const again = sealed.compile(Buffer.from('/api/v[0-9]+/item999/[^/]+'))
    expect(again).toBe(freed)
  })
})
