/**
 * How often a rollout is taken back that is not worse, and how soon one is that doubles the failures of a route. In each
 * simulated run, one of four proxies has the change for ten minutes, and ten routes get ten requests a second each at
 * every proxy. Proxies report every ten seconds. The test is that of the gateway, evaluated after each bucket.
 */
import {
  Comparisons,
  firstWeight,
  type Proportion,
  sumWeight,
} from '../../src/control/plane/rollout/evidence.ts'
import { falseAlarmRate } from '../../src/control/plane/rollout/figures.ts'
import { Random } from '../../test/virtual-time/random.ts'
import type { BenchContext, Row } from '../harness.ts'
import { drawCount } from './draw.ts'

const routes = 10
const bucketSeconds = 10
const requests = 10 * bucketSeconds
const others = 3
const none: Proportion = { count: 0, total: 0 }

const failuresOf = (random: Random, total: number, share: number): Proportion => ({
  count: drawCount(random, total, share),
  total,
})

const sumOf = (parts: readonly Proportion[]): Proportion => ({
  count: parts.reduce((sum, { count }) => sum + count, 0),
  total: parts.reduce((sum, { total }) => sum + total, 0),
})

/** Seconds until a rollout is taken back; undefined if it is not within `seconds`. */
function takenBackAfter(
  random: Random,
  seconds: number,
  share: number,
  factor: number,
): number | undefined {
  const comparisons = new Comparisons()
  // Refusals are compared, too: half of the weight is theirs.
  for (let now = bucketSeconds; now <= seconds; now += bucketSeconds) {
    const changed = Array.from({ length: routes }, (_, route) =>
      failuresOf(random, requests, route === routes - 1 ? share * factor : share),
    )
    const unchanged = changed.map(() => failuresOf(random, others * requests, share))
    comparisons.of('errors', sumWeight / 2).add(sumOf(changed), sumOf(unchanged))
    for (const [route, one] of changed.entries()) {
      const weight = firstWeight(routes) / 2
      comparisons.of(`errors ${route}`, weight).add(one, unchanged[route] ?? none)
    }
    if (comparisons.evidence >= 1 / falseAlarmRate) return now
  }
  return undefined
}

/** Percentage of runs that are taken back within some seconds. */
function takenBack(runs: number, seconds: number, share: number, factor: number): number {
  let count = 0
  for (let run = 0; run < runs; run++) {
    const random = new Random(run, `${seconds} ${share} ${factor}`)
    if (takenBackAfter(random, seconds, share, factor) !== undefined) count++
  }
  return (100 * count) / runs
}

export default function rollout({ quick, note }: BenchContext): Row[] {
  const runs = quick ? 500 : 10_000
  const row = (share: number, factor: number, seconds: number, bound?: Row['bound']): Row => {
    const id = `rollout.${factor === 1 ? 'false-alarms' : 'doubled'}.${Math.round(1_000 * share) / 10}-percent`
    const value = takenBack(runs, seconds, share, factor)
    note(`${id}: ${value.toFixed(2)} % of ${runs} rollouts are taken back within ${seconds} s`)
    return { id, unit: '%', own: [value], ...(bound && { bound }) }
  }
  return [
    ...[0.01, 0.02, 0.05, 0.07, 0.1, 0.12].map((share) => row(share, 2, 60)),
    ...[0.13].map((share) => row(share, 2, 60, { atLeast: 99 })),
    ...[0.001, 0.01, 0.05, 0.1, 0.3].map((share) =>
      row(share, 1, 600, { atMost: 100 * falseAlarmRate }),
    ),
  ]
}
