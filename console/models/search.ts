/** What a text in the search field may mean: a position, a time, or objects. */
import { compareText } from '../../src/ground/model/names.ts'
import type { Moment } from '../log/loaded-log.ts'

const maxFound = 12

export async function searchModel(
  { objects: known, log }: Moment,
  { text }: { readonly text: string },
) {
  const { events } = log
  const number = /^\d+$/.test(text) ? events.indexAt(Number(text)) : -1
  const timeMs = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text.replace(' ', 'T')) : Number.NaN
  const index = Number.isNaN(timeMs) ? number : events.indexAtTime(timeMs)
  await events.load([index])
  const words = text.toLowerCase().split(/\s+/)
  const objects =
    text === ''
      ? []
      : [...known.entries()]
          .map(([key]) => key)
          .filter((key) => words.every((word) => key.toLowerCase().includes(word)))
          .sort((a, b) => a.length - b.length || compareText(a, b))
          .slice(0, maxFound)
  return { event: index < 0 ? undefined : events.row(index), objects }
}
