import { describe, expect, it } from 'vitest'
import type { RouteResource } from '../../ground/model/resources.ts'
import { movedBackend } from './weights.ts'

function rule(weights: Readonly<Record<string, number>>): RouteResource {
  const backends = Object.entries(weights).map(([name, weight]) => {
    return { weight, filters: [], target: { type: 'backend', namespace: 'a', name } as const }
  })
  const route = { kind: 'HTTPRoute', namespace: 'a', name: 'r' }
  const place = { key: 'route/r', route, ruleIndex: 0, created: 0, order: 0 }
  return { type: 'route', ...place, attachments: [], matches: [], filters: [], backends }
}

/** Where 10,000 requests of a backend go. */
function counts(backend: string, before: RouteResource, after: RouteResource) {
  const found: Record<string, number> = {}
  for (let n = 0; n < 10_000; n++) {
    const label = movedBackend(`id-${n}`, backend, { before, after }) ?? 'stays'
    found[label] = (found[label] ?? 0) + 1
  }
  return found
}

describe('movedBackend', () => {
  it('moves as many requests as the share of their backend shrinks', () => {
    const found = counts('a/one', rule({ one: 90, two: 10 }), rule({ one: 45, two: 55 }))
    expect(found.stays).toBeGreaterThan(4_800)
    expect(found.stays).toBeLessThan(5_200)
    expect((found.stays ?? 0) + (found['a/two'] ?? 0)).toBe(10_000)
  })

  it('moves no request of a backend whose share grows or stays', () => {
    const [before, after] = [rule({ one: 1, two: 1 }), rule({ one: 1, two: 3 })]
    expect(counts('a/two', before, after)).toEqual({ stays: 10_000 })
    expect(counts('a/one', before, rule({ one: 5, two: 5 }))).toEqual({ stays: 10_000 })
  })

  it('moves every request of a backend that gets no weight, to those that gain', () => {
    const after = rule({ one: 0, two: 1, three: 1 })
    const found = counts('a/one', rule({ one: 2, two: 1, three: 0 }), after)
    expect(found.stays).toBeUndefined()
    expect(found['a/three']).toBeGreaterThan(found['a/two'] ?? 0)
  })
})
