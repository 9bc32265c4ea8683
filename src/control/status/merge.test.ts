import { describe, expect, it } from 'vitest'
import { controllerName } from '../../ground/model/api-names.ts'
import { statusPatch } from './merge.ts'

const entry = (field: string, controller: string, name: string) => ({
  [field]: { name },
  controllerName: controller,
  conditions: [{ type: 'Accepted', status: 'True', message: 'The route is accepted' }],
})

interface Entry {
  readonly controllerName: string
  readonly conditions: readonly { readonly message: string }[]
}

describe('statuses that several controllers share', () => {
  it.each([
    ['parents', 'parentRef', 32],
    ['ancestors', 'ancestorRef', 16],
  ] as const)('list as many %s as fit beside those of others', (field, ref, most) => {
    const foreign = [entry(ref, 'example.com/a', 'x'), entry(ref, 'example.com/b', 'y')]
    const ours = Array.from({ length: most }, (_, at) => entry(ref, controllerName, `gw-${at}`))
    const live = { [field]: foreign }
    const patch = statusPatch('HTTPRoute', live, { [field]: ours })
    const written = patch?.[field] as readonly Entry[]
    expect(written).toHaveLength(most)
    expect(written.slice(0, 2)).toEqual(foreign)
    expect(written.slice(2, -1)).toEqual(ours.slice(0, most - 3))
    expect(written.at(-1)?.conditions[0]?.message).toBe(
      `The route is accepted. 2 more ${field} are not listed, because status.${field} has at most ${most} entries.`,
    )
    expect(statusPatch('HTTPRoute', { [field]: written }, { [field]: ours })).toBeUndefined()
    expect(statusPatch('HTTPRoute', {}, { [field]: ours })?.[field]).toEqual(ours)
  })

  it('keep the entries of other controllers if there is no room', () => {
    const parents = Array.from({ length: 32 }, (_, at) =>
      entry('parentRef', 'example.com/a', `${at}`),
    )
    const decided = { parents: [entry('parentRef', controllerName, 'gw')] }
    expect(statusPatch('HTTPRoute', { parents }, decided)).toBeUndefined()
  })
})
