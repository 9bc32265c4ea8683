import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import type { Resource } from '../../ground/model/resources.ts'
import { type Edge, edgesOf } from './edges.ts'
import { Scopes } from './scopes.ts'

const node = fc.integer({ min: 0, max: 9 }).map(String)
const edge = fc.tuple(node, node) as unknown as fc.Arbitrary<Edge>
const step = fc.record({ removed: fc.array(edge), added: fc.array(edge) })

/** What can be reached, found the plain way. */
function reachable(edges: ReadonlySet<string>, root: string): string[] {
  const found = new Set([root])
  for (let before = -1; before < found.size; ) {
    before = found.size
    for (const text of edges) {
      const [from = '', to = ''] = text.split('>')
      if (found.has(from)) found.add(to)
    }
  }
  return [...found].sort()
}

describe('the scope of a Gateway', () => {
  it('contains what is reachable from the Gateway, after any sequence of changes', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const scopes = new Scopes()
        const members = scopes.open('0')
        const edges = new Set<string>()
        const known = new Set(members)
        for (const { removed, added } of steps) {
          for (const [from, to] of removed) edges.delete(`${from}>${to}`)
          for (const [from, to] of added) edges.add(`${from}>${to}`)
          const change = scopes.change(removed, added).get('0')
          for (const one of change?.entered ?? []) known.add(one)
          for (const one of change?.left ?? []) known.delete(one)
          expect([...members].sort()).toEqual(reachable(edges, '0'))
          expect([...known].sort()).toEqual([...members].sort())
        }
      }),
      { numRuns: 500 },
    )
  })

  it('[inference.pool] contains the pool of a route with its Pods and its picker, and no other pool', () => {
    const pool = (name: string, picker: string): Resource => ({
      type: 'pool',
      key: `pool/ns/${name}`,
      namespace: 'ns',
      name,
      targetPorts: [8000],
      appProtocol: 'http',
      picker: {
        target: { type: 'service', namespace: 'ns', name: picker, port: 80 },
        failureMode: 'FailOpen',
      },
    })
    const pod = (name: string, pools: string[]): Resource => ({
      type: 'pod',
      key: `pod/ns/${name}`,
      namespace: 'ns',
      name,
      pools,
      address: '10.0.0.1',
      ready: true,
    })
    const route = {
      type: 'route',
      key: 'route/HTTPRoute/ns/a/0',
      route: { kind: 'HTTPRoute', namespace: 'ns', name: 'a' },
      attachments: [],
      filters: [],
      backends: [
        { weight: 1, filters: [], target: { type: 'pool', namespace: 'ns', name: 'near' } },
      ],
    } as unknown as Resource
    const all = [
      pool('near', 'p'),
      pool('far', 'q'),
      pod('both', ['far', 'near']),
      pod('other', ['far']),
      route,
    ]
    const scopes = new Scopes()
    scopes.change([], all.flatMap(edgesOf))
    const members = [...scopes.open('route/HTTPRoute/ns/a/0')]
    expect(members).toEqual(expect.arrayContaining(['pool/ns/near', 'pod/ns/both', 'service/ns/p']))
    expect(members.some((key) => /far|other|service\/ns\/q/.test(key))).toBe(false)
  })

  it('is complete even if it is opened after the changes', () => {
    const scopes = new Scopes()
    scopes.change(
      [],
      [
        ['a', 'b'],
        ['b', 'c'],
        ['x', 'y'],
      ],
    )
    expect([...scopes.open('a')].sort()).toEqual(['a', 'b', 'c'])
    scopes.close('a')
    expect([...scopes.roots()]).toEqual([])
  })
})
