import { expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { canonicalJson } from '../../ground/base/canonical.ts'
import { hasSameContent, shareContent } from './same-content.ts'

const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(undefined, null, true, 0, 1, '', 'a'),
    fc.array(
      tie('tree').filter((item) => item !== undefined),
      { maxLength: 3 },
    ),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__', 'toString'), tie('tree'), {
      maxKeys: 3,
    }),
  ),
}))

it('finds the same content if the canonical JSON is the same', () => {
  fc.assert(
    fc.property(tree, tree, (a, b) => {
      // Undefined as a whole has no JSON.
      fc.pre(a !== undefined && b !== undefined)
      expect(hasSameContent(a, b)).toBe(canonicalJson(a) === canonicalJson(b))
      expect(hasSameContent(a, structuredClone(a))).toBe(true)
    }),
    { numRuns: 5_000 },
  )
})

it('shares equal parts of two versions without changing the content of either', () => {
  fc.assert(
    fc.property(tree, tree, (a, b) => {
      fc.pre(a !== undefined && b !== undefined)
      const [before, after] = [canonicalJson(a), canonicalJson(b)]
      const [older, newer] = [JSON.parse(before), JSON.parse(after)]
      const shared = shareContent(older, newer)
      expect(canonicalJson(older)).toBe(before)
      expect(canonicalJson(shared)).toBe(after)
      expect(shareContent(a, structuredClone(a))).toBe(a)
      expect(shareContent(a, b) === a).toBe(before === after)
    }),
    { numRuns: 5_000 },
  )
})

it('can keep the order of members', () => {
  const text = JSON.stringify
  fc.assert(
    fc.property(tree, tree, (a, b) => {
      fc.pre(a !== undefined && b !== undefined)
      const [before, after] = [text(a), text(b)]
      const older = JSON.parse(before)
      expect(text(shareContent(older, JSON.parse(after), true))).toBe(after)
      expect(text(older)).toBe(before)
    }),
    { numRuns: 5_000 },
  )
  const member = { x: 1, y: 2 }
  const newer = {
    list: [
      { x: 1, y: 2 },
      { y: 2, x: 1 },
    ],
  }
  const { list } = shareContent({ list: [member, member] }, newer, true)
  expect([list[0] === member, list[1] === member]).toEqual([true, false])
})

it('keeps the unchanged parts of an earlier version', () => {
  const older = { spec: { rules: [{ name: 'a' }, { name: 'b' }] }, labels: { team: 'x' } }
  const newer = { spec: { rules: [{ name: 'a' }, { name: 'c' }] }, labels: { team: 'x' } }
  const shared = shareContent(older, newer)
  expect(shared.labels).toBe(older.labels)
  expect(shared.spec.rules[0]).toBe(older.spec.rules[0])
  expect(shared.spec.rules[1]).not.toBe(older.spec.rules[1])
})
