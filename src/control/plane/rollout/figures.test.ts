import { describe, expect, it } from 'vitest'
import fc from '../../../../test/support/fast-check.ts'
import { addCount, type Groups } from '../../../past/series/bucket.ts'
import { firstWeight, laterWeight, RateComparison, sumWeight } from './evidence.ts'
import { type FigureSample, FigureTest, problemOf } from './figures.ts'

const start = Date.parse('2026-01-01T00:00:00Z')

/** Counts requests of a route, and in total. */
function countRoute(groups: Groups, route: string, requests: number, errors: number): void {
  for (const [group, name] of [
    ['all', ''],
    ['route', route],
  ] as const) {
    addCount(groups, group, name, 'requests', requests)
    addCount(groups, group, name, 'errors', errors)
  }
}

/** What a proxy has counted of a route in the bucket with a number. */
function sample(proxy: string, bucket: number, requests: number, errors: number): FigureSample {
  const groups: Groups = new Map()
  countRoute(groups, 'shop', requests, errors)
  const startMs = start + bucket * 10_000
  return { proxy, startMs, endMs: startMs + 10_000, groups }
}

const step = (proxies: readonly string[], bucket = 0, number = 1) => ({
  number,
  proxies,
  since: new Date(start + bucket * 10_000).toISOString(),
  position: 1,
})
const plan = { analysis: ['Errors'] as const }

describe('the comparison of proxies during a rollout', () => {
  it('finds proxies that fail more often, and says how many requests did', () => {
    const samples = [0, 1].flatMap((bucket) => [
      sample('p1', bucket, 50, 20),
      sample('p2', bucket, 100, 1),
    ])
    expect(problemOf(plan, [step(['p1'])], samples)).toBe(
      'route shop: 40 of 100 requests failed with the change, 2 of 200 without',
    )
    expect(problemOf(plan, [step(['p2'])], samples)).toBeUndefined()
    expect(problemOf({ analysis: [] }, [step(['p1'])], samples)).toBeUndefined()
    expect(problemOf({ analysis: ['Refusals'] }, [step(['p1'])], samples)).toBeUndefined()
  })

  it.each([
    [Number.NaN, Number.NaN],
    [-50, -50],
    [-500, 10],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
    [1e308, 1e308],
    [100.5, 50],
  ])('ignores a proxy that reports %s requests, of which %s failed', (requests, errors) => {
    const failing = [sample('p1', 0, 50, 20), sample('p2', 0, 100, 1)]
    const equal = [sample('p1', 0, 100, 1), sample('p2', 0, 100, 1)]
    const forged = sample('p3', 0, requests, errors)
    expect(problemOf(plan, [step(['p1'])], [...equal, forged])).toBeUndefined()
    expect(problemOf(plan, [step(['p1'])], [...failing, forged])).toBe(
      problemOf(plan, [step(['p1'])], failing),
    )
  })

  it('limits what a proxy with forged figures can cause', () => {
    const failing = [sample('p1', 0, 50, 20), sample('p2', 0, 100, 1)]
    // A proxy without the change can hide failures, because its requests are compared with those of the change.
    const hidden = [...failing, sample('p3', 0, 1_000_000, 900_000)]
    expect(problemOf(plan, [step(['p1'])], hidden)).toBeUndefined()
    // It cannot make a change look worse if the proxies with the change have no failures.
    const good = [sample('p1', 0, 100, 0), sample('p2', 0, 100, 0)]
    for (const errors of [0, 500_000, 1_000_000]) {
      const forged = sample('p3', 0, 1_000_000, errors)
      expect(problemOf(plan, [step(['p1'])], [...good, forged])).toBeUndefined()
    }
    // A proxy with the change can cause that it is taken back.
    expect(
      problemOf(plan, [step(['p1'])], [sample('p1', 0, 100, 90), ...good.slice(1)]),
    ).toBeDefined()
  })

  it('finds no problem if proxies with the change get more requests for a route that often fails', () => {
    const mixed = (proxy: string, bucket: number, flaky: number, fine: number): FigureSample => {
      const one = sample(proxy, bucket, 0, 0)
      countRoute(one.groups, 'flaky', flaky, flaky / 5)
      countRoute(one.groups, 'fine', fine, 0)
      return one
    }
    const samples = Array.from({ length: 6 }, (_, bucket) => [
      mixed('p1', bucket, 90, 10),
      mixed('p2', bucket, 10, 90),
    ]).flat()
    expect(problemOf(plan, [step(['p1'])], samples)).toBeUndefined()
  })

  it('compares requests that match no route', () => {
    const unmatched = (proxy: string, errors: number): FigureSample => {
      const one = sample(proxy, 0, 100, 0)
      addCount(one.groups, 'all', '', 'requests', 100)
      addCount(one.groups, 'all', '', 'errors', errors)
      return one
    }
    expect(problemOf(plan, [step(['p1'])], [unmatched('p1', 40), unmatched('p2', 0)])).toBe(
      'no route: 40 of 200 requests failed with the change, 0 of 200 without',
    )
  })

  it('compares requests that fail before a route is found with all requests', () => {
    const early = sample('p1', 0, 60, 0)
    countRoute(early.groups, 'none', 40, 40)
    const others = sample('p2', 0, 200, 0)
    expect(problemOf(plan, [step(['p1'])], [early, others])).toBe(
      'no route: 40 of 100 requests failed with the change, 0 of 200 without',
    )
    expect(problemOf(plan, [step(['p2'])], [early, others])).toBeUndefined()
  })

  /** Adds counts of a route and of all requests. */
  function addCounts(
    { groups }: FigureSample,
    route: string,
    counts: Record<string, number>,
  ): void {
    for (const [name, value] of Object.entries(counts)) {
      addCount(groups, 'all', '', name, value)
      addCount(groups, 'route', route, name, value)
    }
  }

  it('finds a policy that refuses a small share of all routes, among many refusals of others', () => {
    const keys = 'refused:traffic.apiKeyAuthentication of GatewayPolicy default/keys'
    const added = 'refused:traffic.authorization of GatewayPolicy default/added'
    const one = (proxy: string, bucket: number, share: number): FigureSample => {
      const found = sample(proxy, bucket, 0, 0)
      for (let route = 0; route < 20; route++) {
        const own = { requests: 50, refused: 5 + share, [keys]: 5, [added]: share }
        addCounts(found, `r${route}`, own)
      }
      return found
    }
    const refusals = { analysis: ['Refusals'] as const }
    const samples = [one('p1', 0, 1), one('p2', 0, 0), one('p3', 0, 0), one('p4', 0, 0)]
    expect(problemOf(refusals, [step(['p1'])], samples)).toBe(
      'traffic.authorization of GatewayPolicy default/added: 20 of 1000 requests were refused with the change, 0 of 3000 without',
    )
    expect(problemOf(refusals, [step(['p2'])], samples)).toBeUndefined()
    // Without the counts by policy, the other refusals hide these.
    for (const { groups } of samples) {
      for (const group of groups.values()) for (const counts of group.values()) counts.delete(added)
    }
    expect(problemOf(refusals, [step(['p1'])], samples)).toBeUndefined()
  })

  it('orders new policies with as many refusals by name, not by the proxies that counted them', () => {
    const evidenceOf = (atChanged: string, atOthers: string) => {
      const test = new FigureTest()
      const refusing = (proxy: string, bucket: number, policy: string) => {
        const found = sample(proxy, bucket, 100, 0)
        addCount(found.groups, 'all', '', `refused:${policy}`, 1)
        return found
      }
      for (const [bucket, changed, others] of [
        [0, 'known', 'known'],
        [1, atChanged, atOthers],
      ] as const) {
        const [one, another] = [refusing('p1', bucket, changed), refusing('p2', bucket, others)]
        test.add({ changed: [one], others: [another] }, ['Refusals'])
      }
      return test.comparisons.evidence
    }
    expect(evidenceOf('a', 'b')).toBeGreaterThan(evidenceOf('b', 'a'))
  })

  describe('of costs', () => {
    const costs = { analysis: ['Costs'] as const }
    const cost = (proxy: string, counts: Record<string, number>): FigureSample => {
      const found = sample(proxy, 0, 0, 0)
      addCounts(found, 'chat', { requests: 100, billed: 100, ...counts })
      return found
    }

    it('finds a model whose requests cost twice as much', () => {
      const samples = [
        cost('p1', { 'cost:0.000256 small': 80, 'cost:0.004096 large': 20 }),
        cost('p2', { 'cost:0.000256 small': 80, 'cost:0.002048 large': 20 }),
      ]
      expect(problemOf(costs, [step(['p1'])], samples)).toBe(
        'model large: 20 of 20 requests cost more than 0.002048 USD with the change, 0 of 20 without',
      )
      expect(problemOf(costs, [step(['p2'])], samples)).toBeUndefined()
    })

    it('finds a route that is served by a more expensive model', () => {
      const samples = [
        cost('p1', { 'cost:0.004096 large': 100 }),
        cost('p2', { 'cost:0.000256 small': 100 }),
      ]
      expect(problemOf(costs, [step(['p1'])], samples)).toMatch(
        /^route chat: 100 of 100 requests cost more than 0\.\d+ USD with the change, 0 of 100 without$/,
      )
    })

    it('finds costs that are not known any more', () => {
      const samples = [cost('p1', { unpriced: 100 }), cost('p2', { 'cost:0.000256 small': 100 })]
      expect(problemOf(costs, [step(['p1'])], samples)).toBe(
        'route chat: 100 of 100 requests had a cost that is not known with the change, 0 of 100 without',
      )
    })

    it.each([Number.NaN, -40, 1e308, Number.POSITIVE_INFINITY, 0.5])(
      'ignores a proxy that reports %s requests with a cost',
      (forged) => {
        const equal = ['p1', 'p2'].map((proxy) => cost(proxy, { 'cost:0.000256 small': 100 }))
        const other = cost('p3', { 'cost:0.000256 small': forged, 'cost:1.048576 small': 100 })
        expect(problemOf(costs, [step(['p1'])], [...equal, other])).toBeUndefined()
        expect(problemOf(costs, [step(['p3'])], [...equal, other])).toBeUndefined()
      },
    )
  })

  it.each([
    [900, true],
    [1_000, false],
  ])('after %s names of policies, compares another one separately: %s', (names, isFound) => {
    const forged = sample('p3', 0, 0, 0)
    for (let at = 0; at < names; at++) addCounts(forged, 'shop', { [`refused:p${at}`]: 1 })
    const samples = [0, 1].flatMap((bucket) => [
      sample('p1', bucket, 100, 0),
      sample('p2', bucket, 100, 0),
      ...(bucket === 0 ? [forged] : []),
    ])
    const late = samples.find(({ proxy, startMs }) => proxy === 'p1' && startMs > start)
    if (late !== undefined) addCounts(late, 'shop', { 'refused:late': 40 })
    const problem = problemOf({ analysis: ['Refusals'] }, [step(['p1'])], samples)
    expect(problem?.startsWith('late: 40 of 100') ?? false).toBe(isFound)
  })

  it('does not compare with other times, and uses the proxies of the step of each bucket', () => {
    const apart = [sample('p1', 0, 100, 50), sample('p2', 1, 100, 0)]
    expect(problemOf(plan, [step(['p1'])], apart)).toBeUndefined()
    const together = [sample('p1', 0, 100, 50), sample('p2', 0, 100, 0)]
    expect(problemOf(plan, [step(['p1'], 1)], together)).toBeUndefined()
    expect(problemOf(plan, [step(['p2'], 0), step(['p1', 'p2'], 1, 2)], together)).toBeUndefined()
    expect(problemOf(plan, [step(['p1'], 0), step(['p1', 'p2'], 1, 2)], together)).toBeDefined()
  })

  it('compares latencies, resets, responses with 4xx and matches of guards if asked to', () => {
    const withCounts = (
      proxy: string,
      group: 'route' | 'guard',
      counts: Record<string, number>,
    ) => {
      const one = sample(proxy, 0, 0, 0)
      for (const [name, value] of Object.entries(counts)) {
        for (const [where, series] of [
          ['all', ''],
          [group, 'shop'],
        ] as const) {
          addCount(one.groups, where, series, name, value)
        }
      }
      return one
    }
    const cases = [
      [
        'Latency',
        'route',
        { 'le:0.1': 100 },
        { 'le:0.1': 60, 'le:1': 40 },
        '40 of 100 requests took longer than 0.5s',
      ],
      [
        'Resets',
        'route',
        { requests: 100 },
        { requests: 100, resets: 40 },
        '40 of 100 requests were reset by their backend',
      ],
      [
        'ClientErrors',
        'route',
        { requests: 100 },
        { requests: 100, clientErrors: 40 },
        '40 of 100 requests got a 4xx',
      ],
      [
        'Guards',
        'guard',
        { 'verdict:Allow': 100 },
        { 'verdict:Allow': 60, 'verdict:Mask': 40 },
        '40 of 100 checks of guards had a match',
      ],
    ] as const
    for (const [kind, group, usual, worse, text] of cases) {
      const samples = [withCounts('p1', group, worse), withCounts('p2', group, usual)]
      const found = (analysis: readonly (typeof kind | 'Errors')[], proxy = 'p1') =>
        problemOf({ analysis }, [step([proxy])], samples)
      expect(found(['Errors', kind])).toContain(text)
      expect(found([kind])).toContain(text)
      expect(found(['Errors'])).toBeUndefined()
      expect(found([kind], 'p2')).toBeUndefined()
    }
  })

  it('finds one bad route among many', () => {
    const samples = [sample('p1', 0, 2_000, 10), sample('p2', 0, 2_000, 10)]
    const [changed] = samples
    if (changed !== undefined) {
      for (let route = 0; route < 100; route++) {
        for (const { groups } of samples) addCount(groups, 'route', `r${route}`, 'requests', 40)
      }
      addCount(changed.groups, 'route', 'r99', 'errors', 40)
    }
    expect(problemOf(plan, [step(['p1'])], samples)).toContain('route r99: 40 of 40')
  })

  it('has an expected evidence of 1 if both sides are equal, whatever the totals are', () => {
    const totals = fc.record({
      changed: fc.integer({ min: 1, max: 12 }),
      others: fc.integer({ min: 1, max: 12 }),
      failed: fc.nat(24),
    })
    fc.assert(
      fc.property(totals, ({ changed, others, failed }) => {
        if (failed > changed + others) return
        let expected = 0
        for (
          let count = Math.max(0, failed - others);
          count <= Math.min(failed, changed);
          count++
        ) {
          const comparison = new RateComparison()
          comparison.add({ count, total: changed }, { count: failed - count, total: others })
          const ways = choose(changed, count) * choose(others, failed - count)
          expected += (ways / choose(changed + others, failed)) * comparison.evidence
        }
        expect(expected).toBeCloseTo(1, 9)
      }),
      { numRuns: 300 },
    )
  })

  it('gives all comparisons together a weight of at most 1', () => {
    let sum = sumWeight + 100 * firstWeight(100)
    for (let at = 0; at < 10_000; at++) sum += laterWeight(at)
    expect(sum).toBeLessThanOrEqual(1)
    expect(sum).toBeGreaterThan(0.99)
  })
})

/** The number of ways to choose `count` of `total`. */
function choose(total: number, count: number): number {
  let ways = 1
  for (let at = 1; at <= count; at++) ways = (ways * (total - count + at)) / at
  return ways
}
