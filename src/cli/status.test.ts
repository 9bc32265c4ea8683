import { describe, expect, it } from 'vitest'
import { placedConditions } from './status.ts'

describe('places of conditions', () => {
  it('differ for parents that differ in their namespace, section or port alone', () => {
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
