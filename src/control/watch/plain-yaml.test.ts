import { describe, expect, it } from 'vitest'
import { readPlainYaml } from './plain-yaml.ts'

const valuesOf = (text: string) => readPlainYaml(text)?.map(({ value }) => value)

// The fuzz target plain-yaml compares this reader with the complete parser.
describe('reading plain YAML', () => {
  it.each([
    ['a block map', 'a: x\nb: {c: [1, -2.5]}\n', { a: 'x', b: { c: [1, -2.5] } }],
    [
      'lists at the column of their field',
      'a:\n- b: 1\n  c: 2\n-\n',
      { a: [{ b: 1, c: 2 }, null] },
    ],
    ['lists in lists', 'a:\n  - - x\n    - y\n', { a: [['x', 'y']] }],
    ['quoted scalars', 'a: "x\\n"\n"b": \'it\'\'s\'\n', { a: 'x\n', b: "it's" }],
    ['comments', '# one\na: b # two\n  # three\nc: d#e\n', { a: 'b', c: 'd#e' }],
    ['literal texts', 'a: |\n  x\n\n   y\nb: |-\n  z\n\n', { a: 'x\n\n y\n', b: 'z' }],
    ['flow collections of several lines', 'a:\n  [\n    {b: c},\n  ]\n', { a: [{ b: 'c' }] }],
    ['JSON', '{\n  "a": [true, null],\n  "b":"c"\n}\n', { a: [true, null], b: 'c' }],
    ['scalars with colons', 'a: http://b:80/c\n', { a: 'http://b:80/c' }],
  ])('reads %s', (_, text, value) => {
    expect(valuesOf(text)).toEqual([value])
  })

  it('returns each document with its position and skips empty ones', () => {
    const documents = readPlainYaml('# none\n---\na: 1\n---\n---\n  b: 2\n')
    expect(documents).toEqual([
      { value: { a: 1 }, start: 11 },
      { value: { b: 2 }, start: 26 },
    ])
  })

  it.each([
    ['a repeated field', 'a: 1\na: 2\n'],
    ['an anchor', 'a: &b c\n'],
    ['a tag', 'a: !!str 1\n'],
    ['a merge key', '<<: {a: 1}\n'],
    ['a scalar of several lines', 'a: b\n  c\n'],
    ['a number that is not plain', 'a: 0x10\n'],
    ['a name that is no string', 'null: 1\n'],
    ['the prototype of objects', '__proto__: {a: 1}\n'],
    ['a tab', 'a:\tb\n'],
    ['lines of another indentation', 'a:\n   b: 1\n  c: 2\n'],
    ['a list instead of a map', '- a\n'],
    ['an unfinished collection', 'a: [b\n'],
    ['a directive', '%YAML 1.2\n---\na: 1\n'],
    ['deep nesting', `a: ${'['.repeat(100)}${']'.repeat(100)}\n`],
  ])('leaves %s to the complete parser', (_, text) => {
    expect(readPlainYaml(text)).toBeUndefined()
  })
})
