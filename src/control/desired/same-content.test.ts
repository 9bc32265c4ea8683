import { expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { canonicalJson } from '../../ground/base/canonical.ts'
import { hasSameContent } from './same-content.ts'

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
