import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { canonicalJson } from './canonical.ts'

/** A simple implementation of the same JSON. */
function expected(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(expected).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  const texts = members.toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${texts.map(([key, member]) => `${JSON.stringify(key)}:${expected(member)}`).join()}}`
}

const key = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'c',
    'ab',
    'B',
    'é',
    '__proto__',
    '10',
    '9',
    'a'.repeat(70),
    'z'.repeat(70),
  ),
  fc.string({ maxLength: 80 }),
)
const record = (value: fc.Arbitrary<unknown>) =>
  fc.array(fc.tuple(key, value), { maxLength: 30 }).map((members) => {
    const made: Record<string, unknown> = {}
    for (const [name, member] of members) {
      Object.defineProperty(made, name, { value: member, enumerable: true, configurable: true })
    }
    return made
  })
const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null))
const value = record(fc.oneof(leaf, record(fc.option(leaf, { nil: undefined })), fc.array(leaf)))

describe('canonical JSON', () => {
  it('has sorted keys, independent of the keys of earlier records', () => {
    fc.assert(
      fc.property(fc.array(value), (values) => {
        for (const one of values) expect(canonicalJson(one)).toBe(expected(one))
      }),
      { numRuns: 500 },
    )
  })

  it('has sorted keys after more key sequences than the tree holds', () => {
    for (let n = 0; n < 3_000; n++) {
      const made = { z: 1, [`k${n}`]: 2, a: { [`k${n}`]: 3, b: 4 } }
      expect(canonicalJson(made)).toBe(expected(made))
    }
  })
})
