/**
 * Simulated rollouts that compare all kinds of figures together, with the code of the gateway. They measure how often a
 * rollout is taken back although its proxies are equal, and how soon if requests become more expensive or a policy
 * refuses more. One of four proxies has the change. Three routes get ten requests a second each at every proxy. Two models serve each route, with costs
 * that differ by a factor of 32, and one policy refuses requests anyway. Proxies report every ten seconds.
 */
import { FigureTest, falseAlarmRate } from '../../src/control/plane/rollout/figures.ts'
import { figures, type Kind } from '../../src/control/plane/rollout/kinds.ts'
import { costBuckets } from '../../src/engines/messages/cost/cost-bounds.ts'
import { addCount, type Groups } from '../../src/past/series/bucket.ts'
import { Random } from '../../test/virtual-time/random.ts'
import type { BenchContext, Row } from '../harness.ts'
import { drawBuckets, drawCount } from './draw.ts'

const kinds = Object.keys(figures) as Kind[]
const routes = Array.from({ length: 3 }, (_, at) => `default/route-${at}`)
const models = ['small', 'large']
const bucketSeconds = 10
const requestsOfProxy = 10 * bucketSeconds
const others = 3
const latencies = { 0.01: 0.5, 0.05: 0.25, 0.1: 0.15, 0.5: 0.07, 2.5: 0.03 }
/** Number of the first bucket of each model, and the shares of it and the next ones. */
const firstCosts = [8, 12]
const costShares = [0.1, 0.2, 0.3, 0.2, 0.15, 0.05]

interface Scenario {
  /** Share of requests that fail, are refused and so on. */
  readonly base: number
  /** Number of times that the costs of the first model are doubled. */
  readonly doublings: number
  /** Share of requests that a new policy refuses. */
  readonly refused: number
}

/** Draws what some proxies count in a bucket. */
function draw(random: Random, proxies: number, { base, doublings, refused }: Scenario): Groups {
  const groups: Groups = new Map()
  const requests = proxies * requestsOfProxy
  for (const route of routes) {
    const add = (name: string, count: number) => {
      addCount(groups, 'route', route, name, count)
      addCount(groups, 'all', '', name, count)
    }
    const [usual, added] = [base, refused].map((share) => drawCount(random, requests, share))
    add('requests', requests)
    add('refused', (usual ?? 0) + (added ?? 0))
    add('refused:traffic.apiKeyAuthentication of GatewayPolicy default/keys', usual ?? 0)
    add('refused:traffic.authorization of GatewayPolicy default/added', added ?? 0)
    for (const name of ['errors', 'resets', 'clientErrors']) {
      add(name, drawCount(random, requests, base))
    }
    const slow = drawBuckets(random, requests, Object.values(latencies))
    for (const [at, bound] of Object.keys(latencies).entries()) add(`le:${bound}`, slow[at] ?? 0)
    add('billed', requests)
    add('unpriced', drawCount(random, requests, base))
    for (const [model, name] of models.entries()) {
      const first = (firstCosts[model] ?? 0) + (model === 0 ? doublings : 0)
      for (const [at, count] of drawBuckets(random, requests / 2, costShares).entries()) {
        add(`cost:${costBuckets[first + at]} ${name}`, count)
      }
    }
  }
  const matched = drawCount(random, requests, base)
  for (const [group, name] of [
    ['guard', 'Request Regex'],
    ['all', ''],
  ] as const) {
    addCount(groups, group, name, 'verdict:Mask', matched)
    addCount(groups, group, name, 'verdict:Allow', requests - matched)
  }
  return groups
}

function isTakenBack(random: Random, seconds: number, scenario: Scenario): boolean {
  const test = new FigureTest()
  const equal = { ...scenario, doublings: 0, refused: 0 }
  for (let now = 0; now < seconds; now += bucketSeconds) {
    const times = { startMs: 1_000 * now, endMs: 1_000 * (now + bucketSeconds) }
    const changed = [{ proxy: 'changed', ...times, groups: draw(random, 1, scenario) }]
    const unchanged = [{ proxy: 'others', ...times, groups: draw(random, others, equal) }]
    test.add({ changed, others: unchanged }, kinds)
    if (test.comparisons.evidence >= 1 / falseAlarmRate) return true
  }
  return false
}

export default function rollout({ quick, note }: BenchContext): Row[] {
  const row = (name: string, seconds: number, scenario: Scenario, bound?: Row['bound']): Row => {
    const isEqual = scenario.doublings === 0 && scenario.refused === 0
    const runs = quick ? 100 : isEqual ? 10_000 : 1_000
    const id = `rollout.all-kinds.${name}`
    let count = 0
    for (let run = 0; run < runs; run++) {
      if (isTakenBack(new Random(run, id), seconds, scenario)) count++
    }
    const value = (100 * count) / runs
    note(`${id}: ${value.toFixed(2)} % of ${runs} rollouts are taken back within ${seconds} s`)
    return { id, unit: '%', own: [value], ...(bound && { bound }) }
  }
  const falseAlarms = [0.001, 0.01, 0.05].map((base) =>
    row(
      `false-alarms.${100 * base}-percent`,
      60,
      { base, doublings: 0, refused: 0 },
      {
        atMost: 100 * falseAlarmRate,
      },
    ),
  )
  return [
    row('doubled-cost', 20, { base: 0.01, doublings: 1, refused: 0 }, { atLeast: 99 }),
    ...[10, 20, 30, 60].map((seconds) =>
      row(`new-policy.${seconds}-seconds`, seconds, { base: 0.05, doublings: 0, refused: 0.02 }),
    ),
    ...falseAlarms,
  ]
}
