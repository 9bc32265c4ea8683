import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import fc from '../../../../test/support/fast-check.ts'
import { writeYaml } from './write-yaml.ts'

const byPackage = (object: object) =>
  stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })

const texts = fc.oneof(
  fc.constantFrom('a', '/p', '30s', 'true', 'Null', '1e3', '.inf', '~', '-', '--- a', '...', ''),
  fc.constantFrom('a: b', 'a #b', "it's", '"q"', 'two\nlines\n', ' a', 'b ', '<<', '0x1F', 'a:'),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
)
const keys = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('name', 'spec', 'a.b/c', 'x-y', 'items', 'on', 'y') },
  { weight: 1, arbitrary: texts.filter((text) => text !== '__proto__') },
)
const { object } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    texts,
    fc.constantFrom(null, true, false, 0, -1, 1.5, 1e21, 2 ** 53),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.dictionary(keys, fc.oneof(tie('value'), fc.constant(undefined)), { maxKeys: 4 }),
}))

describe('writing YAML', () => {
  it('writes any object as the yaml package does', () => {
    const isSame = (one: object) => void expect(writeYaml(one)).toBe(byPackage(one))
    fc.assert(fc.property(object, isSame), { numRuns: 3_000 })
  })

  it.each([
    { spec: { rules: [{ matches: [{ path: { value: '/' } }], filters: [] }, [['a'], {}]] } },
    { deep: { list: [{ a: undefined, b: {} }], none: { a: undefined } } },
    { text: 'one\n  two\n', after: 'x' },
  ])('writes %j as the yaml package does', (one) => {
    expect(writeYaml(one)).toBe(byPackage(one))
  })
})
