import { describe, expect, it } from 'vitest'
import { placedConditions } from './placed-conditions.ts'

describe('the place of a condition', () => {
  it('distinguishes parents that differ only in namespace, section or port', () => {
    const conditions = [{ type: 'Accepted', status: 'True', reason: 'Accepted' }]
    const parents = [
      {},
      { namespace: 'infra' },
      { sectionName: 'http' },
      { port: 80 },
      { sectionName: 'http', port: 80 },
    ].map((more) => ({ parentRef: { kind: 'Gateway', name: 'edge', ...more }, conditions }))
    expect(placedConditions({ parents }).map(({ place }) => place)).toEqual([
      'parent Gateway edge',
      'parent Gateway infra/edge',
      'parent Gateway edge#http',
      'parent Gateway edge:80',
      'parent Gateway edge#http:80',
    ])
  })
})
