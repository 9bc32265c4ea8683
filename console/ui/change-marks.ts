/** Marks on charts for changes of the configuration. */
import { objectText, parseObjectKey } from '../../src/ground/model/names.ts'
import type { SeriesAnswer } from '../../src/past/series/answer.ts'
import type { Mark } from '../models/marks.ts'
import { linkTo } from '../state/location.ts'
import type { TimeRange } from '../state/range.ts'
import { useLogModel } from '../state/worker-client.ts'
import type { ChartMark } from './chart.tsx'

/** The changes of the configuration in the shown time. */
export function useMarks({ from, stepSeconds }: SeriesAnswer, range: TimeRange): readonly Mark[] {
  const fromMs = Date.parse(from)
  // Marks that are closer would cover each other.
  const apartMs = stepSeconds * 200
  const toMs = range.toMs ?? Number.MAX_SAFE_INTEGER
  const { value } = useLogModel('marks', { fromMs, toMs, apartMs })
  return value ?? []
}

/** A change of one event opens that event; several open the difference that they make. */
export const markLink = ({ first, last }: Mark): string =>
  first === last
    ? linkTo('event', [`${first}`], {}, first)
    : linkTo('diff', [], { from: `${first - 1}` }, last)

export function markText({ objects }: Mark): string {
  const [first = '', ...more] = objects.map((object) =>
    object === '' || object.startsWith('Desired/')
      ? 'the configuration'
      : objectText(parseObjectKey(object)),
  )
  return more.length === 0 ? first : `${first} and ${more.length} more`
}

export const chartMark = (mark: Mark): ChartMark => ({
  timeMs: mark.timeMs,
  href: markLink(mark),
  text: `Changed: ${markText(mark)}`,
})
