import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { JsonScanner } from './scanner.ts'

const scanner = new JsonScanner({
  read: ['model', 'usage'],
  noted: ['choices'],
  checked: { id: (bytes, start, end) => bytes.toString('latin1', start, end) === 'good' },
  refused: ['forbidden'],
})
const accepts = (text: string) => scanner.scanObject(Buffer.from(text))

function valuesIn(text: string) {
  expect(accepts(text)).toBe(true)
  return scanner.values()
}

/** Numbers that a double cannot represent keep their text; -0 is written as 0. */
const inDoubles = (value: object): object => JSON.parse(JSON.stringify(value))

interface Doc {
  readonly model?: unknown
  readonly usage?: unknown
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('a scan for members of a JSON object', () => {
  it('reads members of every type', () => {
    for (const value of [
      'a',
      'é"\\\n😀',
      '',
      0,
      -1.5e-7,
      true,
      false,
      null,
      {},
      [],
      { a: [1, {}] },
    ]) {
      for (const space of [undefined, 2, '\t']) {
        const text = JSON.stringify(
          { other: [{ model: 'b' }], model: value, last: {} },
          undefined,
          space,
        )
        expect(valuesIn(text)).toEqual({ model: value })
      }
    }
  })

  it('omits members that are absent or nested', () => {
    expect(valuesIn('{}')).toEqual({})
    expect(valuesIn('{"a":{"model":1},"b":[{"usage":2}]}')).toEqual({})
  })

  it('reads the last of members with the same name', () => {
    expect(valuesIn('{"model":"a","model":{"b":[]},"usage":1,"model":"c"}')).toEqual({
      model: 'c',
      usage: 1,
    })
    expect(valuesIn('{"model":{"b":1},"model":null}')).toEqual({ model: null })
  })

  it('returns the range of a member', () => {
    expect(accepts('{ "model" : "a" , "usage":{}}')).toBe(true)
    expect(scanner.rangeOf('model')).toEqual({ start: 12, end: 15 })
    expect(scanner.rangeOf('usage')).toEqual({ start: 26, end: 28 })
    expect(scanner.rangeOf('choices')).toBeUndefined()
    expect(accepts('{"model":"a","model":"b" }')).toBe(true)
    expect(scanner.rangeOf('model')).toEqual({ start: 21, end: 24 })
  })

  it('distinguishes filled members from null, empty arrays and absent ones', () => {
    for (const value of ['[1]', '{}', '""', '0', 'false', '[[]]']) {
      expect(accepts(`{"choices":${value}}`)).toBe(true)
      expect(scanner.isFilled('choices'), value).toBe(true)
    }
    for (const text of ['{"choices":null}', '{"choices":[ ]}', '{"a":{"choices":[1]}}', '{}']) {
      expect(accepts(text)).toBe(true)
      expect(scanner.isFilled('choices'), text).toBe(false)
    }
  })

  it('checks strings in nested members and refuses members at any depth', () => {
    expect(accepts('{"id":"bad","a":[{"id":"good"},{"id":5}]}')).toBe(true)
    expect(accepts('{"a":[{"id":"bad"}]}')).toBe(false)
    expect(accepts('{"a":[{"id":"good","id":"bad"}]}')).toBe(false)
    expect(accepts('{"a":"forbidden"}')).toBe(true)
    expect(accepts('{"forbidden":1}')).toBe(false)
    expect(accepts('{"a":[[{"forbidden":null}]]}')).toBe(false)
  })

  it('leaves keys with escapes, byte order marks and deep nesting to a parser', () => {
    expect(accepts('{"mod\\u0065l":"a"}')).toBe(false)
    expect(accepts('{"a":{"\\"":1}}')).toBe(false)
    expect(accepts('\ufeff{}')).toBe(false)
    expect(accepts(`{"a":${'['.repeat(63)}${']'.repeat(63)}}`)).toBe(true)
    expect(accepts(`{"a":${'['.repeat(64)}${']'.repeat(64)}}`)).toBe(false)
  })

  it('accepts no other documents than objects', () => {
    for (const text of ['', ' ', '[]', '"a"', 'null', '1', '{} {}', '{}x', '{}\0']) {
      expect(accepts(text), text).toBe(false)
    }
  })

  it('accepts a changed document only if JSON.parse does', () => {
    const pieces = ['{', '}', '[', ']', ',', ':', '"', '\\', 'u', '0', '1', '-', '.', 'e', '+', ' ']
    const values = fc
      .jsonValue({ maxDepth: 3 })
      .map((value) => JSON.stringify({ model: value, usage: 1 }))
    const change = fc.record({
      at: fc.nat(200),
      removed: fc.nat(3),
      added: fc.array(fc.constantFrom(...pieces, 'true', '\n', '\u0001'), { maxLength: 3 }),
    })
    fc.assert(
      fc.property(values, change, (text, { at, removed, added }) => {
        const from = at % (text.length + 1)
        const changed = text.slice(0, from) + added.join('') + text.slice(from + removed)
        if (!accepts(changed)) return
        expect(isJson(changed), changed).toBe(true)
        const whole = JSON.parse(changed, (_, value: unknown) => (value === 0 ? 0 : value)) as Doc
        expect(inDoubles(scanner.values())).toEqual({ model: whole.model, usage: whole.usage })
      }),
      { numRuns: 3_000 },
    )
  })

  it('accepts what JSON.stringify writes, unless a key has an escape', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })), (value) => {
        const text = JSON.stringify(value)
        const hasRefused = /\\|forbidden|"id"/.test(text)
        if (!hasRefused) expect(accepts(text), text).toBe(true)
      }),
    )
  })
})

describe('a scan that accepts every name once', () => {
  const unique = new JsonScanner({ noted: ['method', 'id'], names: 'unique', maxDepth: 3 })
  const problemIn = (text: string) => (unique.scanText(text) ? undefined : unique.problem)

  it('notes members at their offsets in the text, whatever characters it has', () => {
    for (const other of ['a', 'é', '\u0122', '€', '😀', '\ud800']) {
      const text = ` {"${other}": "${other}", "m\\u0065thod": [1], "id": "\\""} `
      expect(unique.scanText(text), text).toBe(true)
      const { start, end } = unique.rangeOf('method') ?? { start: 0, end: 0 }
      expect(text.slice(start, end)).toBe('[1]')
      expect(text.slice(unique.startOf('id'), unique.endOf('id'))).toBe('"\\""')
      expect(unique.otherNames()).toEqual([other])
    }
  })

  it('accepts values that are no objects', () => {
    for (const text of ['[]', '"a"', '1', 'null', '[{"a":1},{"a":2}]']) {
      expect(problemIn(text), text).toBeUndefined()
    }
  })

  it('refuses an object at any depth that has a name twice', () => {
    const many = Array.from({ length: 40 }, (_, at) => `"n${at}":{"a":1}`)
    expect(problemIn(`{${many.join(',')}}`)).toBeUndefined()
    for (const text of [
      '{"a":1,"a":1}',
      '[{"b":{"a":1,"\\u0061":2}}]',
      '{"é":1,"\\u00e9":2}',
      `{${many.join(',')},"n7":1}`,
      `{${many.join(',')},"n\\u0037":1}`,
    ]) {
      expect(problemIn(text), text).toContain('is there twice')
    }
    expect(problemIn('{"€":1,"₭":2}')).toBeUndefined()
  })

  it('says what is wrong and where', () => {
    expect(problemIn('{"a":1} x')).toBe('something follows the value, at offset 8')
    expect(problemIn('{"a" 1}')).toBe('a colon is missing, at offset 5')
    expect(problemIn('{"a":1,}')).toBe('a key is missing, at offset 7')
    expect(problemIn('{"a":1 "b":2}')).toBe('a comma or the end is missing, at offset 7')
    expect(problemIn('["€\n"]')).toBe('a string has a control character, at offset 3')
    expect(problemIn('["a')).toBe('a string has no end, at offset 3')
    expect(problemIn('["\\x"]')).toBe('a string has a bad escape, at offset 2')
    expect(problemIn('[tru]')).toBe('this is no JSON, at offset 1')
    expect(problemIn('[[[[]]]]')).toBe('values lie too deep in each other, at offset 3')
  })
})
