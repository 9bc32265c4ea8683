/** Time series of the chosen range, from the process that serves the page. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { SeriesAnswer } from '../../src/past/series/answer.ts'
import type { SeriesGroup } from '../../src/past/series/bucket.ts'
import { type TimeRange, timesOf } from './range.ts'
import { served, useServed } from './served.ts'
import type { Shown } from './worker-client.ts'

export const hasSeries = (): boolean => served.value?.about.offers.series === true

/** Times without the counts of a proxy, in the series that the view shows. */
export const missingSeries = signal<NonNullable<SeriesAnswer['missing']>>([])

const everyMs = 5_000
const defaultTop = 100

interface SeriesOptions {
  /** Groups of which the points are wanted, too. */
  readonly pointsOf?: readonly SeriesGroup[]
  /** Number of series of each group; all others are summed up. */
  readonly top?: number
  /** Duration of a step, such as `24h`. By default, it depends on the range. */
  readonly step?: string
}

/** Series of several groups. A range that ends now is loaded again from time to time. */
export function useSeries<Group extends SeriesGroup>(
  range: TimeRange,
  groups: readonly Group[],
  { pointsOf = [], step, top = defaultTop }: SeriesOptions = {},
): Shown<Readonly<Record<Group, SeriesAnswer>>> {
  const key = JSON.stringify([range, groups, pointsOf, step, top])
  const shown = useServed(
    key,
    async (server, signal) => {
      const { fromMs, toMs } = timesOf(range)
      const answers = groups.map(async (by) => {
        const query = new URLSearchParams({
          by,
          top: `${top}`,
          from: new Date(fromMs).toISOString(),
          to: new Date(toMs).toISOString(),
          ...(pointsOf.includes(by) && { points: '' }),
          ...(step !== undefined && { step, points: '' }),
        })
        return [by, await server.series(query, signal)] as const
      })
      return Object.fromEntries(await Promise.all(answers)) as Record<Group, SeriesAnswer>
    },
    range.toMs === undefined ? everyMs : undefined,
  )
  const [answer] = Object.values<SeriesAnswer>(shown.value ?? {})
  useEffect(() => {
    missingSeries.value = answer?.missing ?? []
    return () => {
      missingSeries.value = []
    }
  }, [answer])
  return shown
}
