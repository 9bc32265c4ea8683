/** What Kubernetes leaves open or does otherwise; the rest is compared with it in test/cluster. */
import { describe, expect, it } from 'vitest'
import { shapes } from './patch-shape.ts'
import { PatchError, strategicMerge } from './strategic-merge.ts'

const pod = (tolerations: unknown) => ({ template: { spec: { tolerations } } })
const merged = (before: unknown, patch: unknown) =>
  strategicMerge(pod(before), pod(patch), shapes.deployment, 'spec')
const service = (ports: unknown, patch: unknown) =>
  strategicMerge({ ports }, { ports: patch }, shapes.service, 'spec')?.ports

describe('merging tolerations', () => {
  const spot = { key: 'spot', operator: 'Exists' }
  it.each([
    [
      'updates the toleration with the same key',
      [{ key: 'a', value: 'x' }, spot],
      [{ key: 'a', value: 'y' }],
      [{ key: 'a', value: 'y' }, spot],
    ],
    ['adds a toleration with another key', [spot], [{ key: 'b' }], [spot, { key: 'b' }]],
    [
      'compares the effects of tolerations that share a key',
      [
        { key: 'a', effect: 'NoExecute' },
        { key: 'a', effect: 'NoSchedule' },
      ],
      [{ key: 'a', effect: 'NoSchedule', value: 'x' }],
      [
        { key: 'a', effect: 'NoExecute' },
        { key: 'a', effect: 'NoSchedule', value: 'x' },
      ],
    ],
    [
      'adds two tolerations with one key',
      [],
      [
        { key: 'a', effect: 'NoExecute' },
        { key: 'a', effect: 'NoSchedule' },
      ],
      [
        { key: 'a', effect: 'NoExecute' },
        { key: 'a', effect: 'NoSchedule' },
      ],
    ],
    [
      'adds a toleration without a key',
      [spot],
      [{ operator: 'Exists' }],
      [spot, { operator: 'Exists' }],
    ],
    [
      'deletes a toleration by key',
      [{ key: 'a' }, spot],
      [{ key: 'spot', $patch: 'delete' }],
      [{ key: 'a' }],
    ],
  ])('%s', (_, before, patch, after) => {
    const { template } = merged(before, patch) as { template: { spec: { tolerations: unknown[] } } }
    expect(template.spec.tolerations).toHaveLength(after.length)
    expect(template.spec.tolerations).toEqual(expect.arrayContaining([...after] as unknown[]))
  })
})

describe('merging ports that share a number but not a protocol', () => {
  const both = [
    { port: 53, protocol: 'TCP' },
    { port: 53, protocol: 'UDP' },
  ]
  it('changes only the port of the protocol that the patch names', () => {
    const after = service(both, [{ port: 53, protocol: 'UDP', nodePort: 30_053 }])
    expect(after).toContainEqual({ port: 53, protocol: 'UDP', nodePort: 30_053 })
    expect(after).toContainEqual({ port: 53, protocol: 'TCP' })
  })
  it('deletes both ports if the patch names no protocol', () => {
    expect(service(both, [{ port: 53, $patch: 'delete' }])).toEqual([])
  })
})

describe('patch directives', () => {
  const merge = (before: object, patch: object) =>
    strategicMerge({ ...before }, { ...patch }, {}, 'spec')
  it('do not remain in the result, nor do deleted maps', () => {
    expect(merge({ a: { b: 1 }, c: 2 }, { a: { $patch: 'delete' } })).toEqual({ c: 2 })
    expect(merge({}, { a: { $patch: 'replace', b: { $patch: 'delete' }, c: null, d: 1 } })).toEqual(
      { a: { d: 1 } },
    )
    expect(merge({ a: ['x'] }, { a: [{ $patch: 'replace' }, 'y'] })).toEqual({ a: ['y'] })
    expect(merge({}, { a: [{ $patch: 'delete', name: 'x' }, { name: 'y' }] })).toEqual({
      a: [{ name: 'y' }],
    })
  })
  it('of the whole object delete or replace it', () => {
    expect(merge({ a: 1 }, { $patch: 'delete' })).toBeUndefined()
    expect(merge({ a: 1 }, { $patch: 'replace', b: 2 })).toEqual({ b: 2 })
  })
  it('are own properties, so that __proto__ pollutes nothing', () => {
    const patch = JSON.parse('{"__proto__":{"polluted":true},"a":{"constructor":{"b":1}}}')
    expect(Object.hasOwn(merge({ a: {} }, patch) ?? {}, '__proto__')).toBe(true)
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })
  it.each([
    [{ a: { $patch: 'remove' } }, 'spec.a: $patch is delete, replace or merge, not "remove"'],
    [
      { list: [{ $patch: 'delete', name: 'x' }] },
      'spec.list[0]: items of this list have no merge key',
    ],
    [{ '$setElementOrder/list': 1 }, 'spec.$setElementOrder/list: expected a list'],
    [{ $retainKeys: ['a'], b: 1 }, 'spec.b: is set, and not among $retainKeys'],
  ])('are refused with their path if they are invalid: %j', (patch, message) => {
    expect(() => merge({ a: {}, list: [{ name: 'x' }] }, patch)).toThrow(PatchError)
    expect(() => merge({ a: {}, list: [{ name: 'x' }] }, patch)).toThrow(message)
  })
})
