import { describe, expect, it } from 'vitest'
import { check } from './check.ts'
import {
  boolean,
  choice,
  type Infer,
  integer,
  integerChoice,
  intOrString,
  json,
  jsonObject,
  list,
  map,
  object,
  optional,
  required,
  text,
} from './field.ts'
import { exactlyOneOf, rule } from './rules.ts'

const pair = object(
  'Pair',
  {
    low: required(integer({ min: 0, max: 9 }), 'Low.'),
    high: required(integer(), 'High.'),
  },
  {
    rules: [
      rule<{ low: number; high: number }>({
        message: 'low must not be above high',
        holds: ({ low, high }) => low <= high,
        at: 'low',
      }),
    ],
  },
)

const everything = object(
  'Everything',
  {
    name: optional(text({ min: 2, max: 3 }), 'Name.'),
    pairs: optional(list(pair, { min: 1, max: 2 }), 'Pairs.'),
    flags: optional(map(boolean(), { max: 1, keys: text({ max: 2 }) }), 'Flags.'),
    mode: optional(choice('Mode', { On: 'on', Off: 'off' }), 'Mode.'),
    code: optional(integerChoice(1, 2), 'Code.'),
    any: optional(json(), 'Any.'),
    document: optional(jsonObject(), 'Document.'),
    port: optional(intOrString(), 'Port.'),
    filled: optional(text(), { doc: 'Filled.', fill: 'x' }),
    one: optional(boolean(), 'One.'),
    two: optional(boolean(), 'Two.'),
  },
  { rules: [exactlyOneOf('one', 'two')] },
)

const problemsOf = (value: object) => {
  const outcome = check(everything, { one: true, ...value }, ['spec'])
  return outcome.ok ? [] : outcome.problems.map(({ path, message }) => `${path}: ${message}`)
}

describe('check', () => {
  it('returns a value of the type that the fields describe', () => {
    const outcome = check(everything, { one: true, pairs: [{ low: 1, high: 2 }], any: null })
    const value: Infer<typeof everything> | undefined = outcome.ok ? outcome.value : undefined
    expect(value).toEqual({ one: true, pairs: [{ low: 1, high: 2 }], any: null, filled: 'x' })
  })

  it.each([
    [{ name: 'a' }, 'spec.name: must have at least 2 characters'],
    [{ name: 'abcd' }, 'spec.name: must have at most 3 characters, has 4'],
    [{ name: 1 }, 'spec.name: must be a string, not an integer; write it in quotes: "1"'],
    [{ name: [] }, 'spec.name: must be a string, not a list'],
    [{ name: null }, 'spec.name: must be a string, not null; leave the field out to unset it'],
    [{ pairs: [] }, 'spec.pairs: must have at least 1 item'],
    [{ pairs: {} }, 'spec.pairs: must be a list, not an object'],
    [{ pairs: [{ low: 1 }] }, 'spec.pairs[0].high: is required'],
    [{ pairs: [{ low: 10, high: 11 }] }, 'spec.pairs[0].low: must be at most 9'],
    [{ pairs: [{ low: -1, high: 11 }] }, 'spec.pairs[0].low: must be at least 0'],
    [{ pairs: [{ low: 0.5, high: 11 }] }, 'spec.pairs[0].low: must be an integer'],
    [{ pairs: [{ low: 2, high: 1 }] }, 'spec.pairs[0].low: low must not be above high'],
    [{ flags: { a: 1 } }, 'spec.flags.a: must be true or false, not an integer'],
    [{ flags: { 'a/': 'x' } }, 'spec.flags["a/"]: must be true or false, not a string'],
    [{ flags: { abc: true } }, 'spec.flags: key "abc" must have at most 2 characters, has 3'],
    [{ flags: { a: true, b: true } }, 'spec.flags: must have at most 1 entry, has 2'],
    [{ mode: 'on' }, 'spec.mode: must be one of On, Off'],
    [{ code: 3 }, 'spec.code: must be one of 1, 2'],
    [{ any: { a: Number.NaN } }, 'spec.any: must be JSON'],
    [{ document: [] }, 'spec.document: must be an object, not a list'],
    [{ port: 1.5 }, 'spec.port: must be an integer or a string, not a number'],
    [{ port: 2 ** 60 }, 'spec.port: must be an integer of at most 15 digits'],
    [{ naem: 'ab' }, 'spec.naem: unknown field; did you mean name?'],
    [{ two: true }, 'spec: exactly one of one, two must be set'],
  ])('reports for %j where and what is wrong', (value, problem) => {
    expect(problemsOf(value)).toEqual([problem])
  })

  it('counts characters, not UTF-16 units', () => {
    expect(problemsOf({ name: '😀😀😀' })).toEqual([])
    expect(problemsOf({ name: '😀' })).toEqual(['spec.name: must have at least 2 characters'])
  })

  it('checks a rule only if its parts are valid, and a group of fields in any case', () => {
    expect(problemsOf({ pairs: [{ low: 'a', high: 1 }], two: 'x' })).toEqual([
      'spec.pairs[0].low: must be an integer, not a string',
      'spec.two: must be true or false, not a string',
      'spec: exactly one of one, two must be set',
    ])
  })

  it('reports every problem at once', () => {
    expect(problemsOf({ name: '', mode: 'x', pairs: [{}, {}] })).toHaveLength(6)
  })
})
