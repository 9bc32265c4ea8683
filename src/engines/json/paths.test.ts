import { describe, expect, it } from 'vitest'
import { parsePath } from './paths.ts'

const any = { isDeep: false }
const named = (name: string, isDeep = false) => ({ name, isDeep })

describe('a path in JSON', () => {
  it.each([
    ['$', []],
    ['text', [named('text')]],
    ['$.a.b', [named('a'), named('b')]],
    ['messages[*].text', [named('messages'), any, named('text')]],
    ['$[0]["a b"].*', [{ index: 0, isDeep: false }, named('a b'), any]],
    ['$[\'it\\\'s "x"\']["\\u0061"]', [named(`it's "x"`), named('a')]],
    ['$..note..*', [named('note', true), { isDeep: true }]],
    ["$..['Note']", [named('note', true)]],
    ['$.über_1', [named('über_1')]],
  ])('%s is parsed into its segments', (text, expected) => {
    expect(parsePath(text)).toEqual(expected)
  })

  it.each([
    ['', 'a path must not be empty'],
    ['$.a[?@.b > 1]', 'filters are not supported, at character 4'],
    ['$[1:2]', 'slices are not supported, at character 2'],
    ['$[-1]', 'negative indexes are not supported, at character 2'],
    ["$['a','b']", 'lists of selectors are not supported, at character 2'],
    ['$[0,1]', 'lists of selectors are not supported, at character 2'],
    ['$[01]', 'expected a quoted name, an index or *, at character 2'],
    ["$['\\x']", 'a quoted name has a bad escape, at character 2'],
    ['$.', "expected .name, ['name'], [index], .* or [*], at character 2"],
    ['$a', "expected .name, ['name'], [index], .* or [*], at character 2"],
    ['a b', "expected .name, ['name'], [index], .* or [*], at character 2"],
    ['a.b-c', "expected .name, ['name'], [index], .* or [*], at character 4"],
    ['length(a)', "expected .name, ['name'], [index], .* or [*], at character 7"],
    [`$${'.a'.repeat(17)}`, 'a path has at most 16 segments'],
  ])('%s is refused: %s', (text, problem) => {
    expect(parsePath(text)).toBe(problem)
  })
})
