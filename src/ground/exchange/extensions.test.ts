import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { Extensions } from './extensions.ts'

describe('extensions', () => {
  it('hold the same values as a Map after any calls', () => {
    const call = fc.record({
      kind: fc.constantFrom('set', 'set', 'delete', 'clear'),
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      value: fc.option(fc.nat(), { nil: undefined }),
    })
    fc.assert(
      fc.property(fc.array(call, { maxLength: 60 }), (calls) => {
        const [extensions, map] = [new Extensions(), new Map<string, unknown>()]
        for (const { kind, name, value } of calls) {
          for (const one of [extensions, map]) {
            if (kind === 'set') one.set(name, value)
            else if (kind === 'delete') one.delete(name)
            else one.clear()
          }
          expect(extensions.size).toBe(map.size)
          expect(new Map(extensions)).toEqual(map)
          for (const name of ['a', 'f']) {
            expect([extensions.has(name), extensions.get(name)]).toEqual([
              map.has(name),
              map.get(name),
            ])
          }
        }
      }),
    )
  })
})
