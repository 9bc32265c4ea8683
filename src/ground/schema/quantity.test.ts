import { describe, expect, it } from 'vitest'
import { check } from './check.ts'
import { byteSize, object, optional } from './field.ts'
import { quantityValue } from './quantity.ts'

describe('byte quantities', () => {
  it.each([
    ['2Mi', 2_097_152],
    ['1.5Ki', 1536],
    ['2.3M', 2_300_000],
    ['.5k', 500],
    ['5.', 5],
    ['+1G', 1_000_000_000],
    ['-1Ki', -1024],
    ['1E', 1e18],
    ['1E3', 1000],
    ['15e-1', 2],
    ['1e-9', 1],
    ['-1.5', -1],
    ['1500m', 2],
    ['1500000m', 1500],
    ['9999999999999999999Ei', 1e19 * 2 ** 60],
  ])('include %s', (text, value) => expect(quantityValue(text)).toBe(value))

  it.each([
    '',
    '.',
    'Mi',
    '2MB',
    '2 Mi',
    '2mi',
    '1e999',
    '9'.repeat(20),
    '1_000',
    '0x10',
    '2000x',
    5,
    null,
  ])('do not include %j', (text) => expect(quantityValue(text)).toBeUndefined())

  const schema = object('Sizes', { size: optional(byteSize({ min: 2, max: 1024 }), 'How much.') })
  const outcomeOf = (size: unknown) => {
    const outcome = check(schema, { size })
    return outcome.ok ? outcome.value.size : outcome.problems
  }

  it('are converted to numbers', () => {
    expect(outcomeOf('1Ki')).toBe(1024)
    expect(outcomeOf(7)).toBe(7)
  })

  it.each([
    ['1025', 'must be at most 1024'],
    ['16E', 'must be at most 1024'],
    ['1', 'must be at least 2'],
    ['-5Mi', 'must be at least 2'],
    [2.5, 'must be an integer'],
    ['1024.5', 'must be at most 1024'],
    ['lots', 'must be a number of bytes such as 2097152 or 2Mi, not a string'],
    [true, 'must be a number of bytes such as 2097152 or 2Mi, not a boolean'],
  ])('are refused with the path of the field: %j', (size, message) => {
    expect(outcomeOf(size)).toEqual([{ path: 'size', message }])
  })
})
