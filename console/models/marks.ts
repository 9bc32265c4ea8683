/** Changes of the configuration in a time, for charts. */
import type { Moment } from '../log/loaded-log.ts'

export interface Mark {
  readonly timeMs: number
  /** Positions of the first and the last event. */
  readonly first: number
  readonly last: number
  /** Keys of the changed objects, without repetition. */
  readonly objects: readonly string[]
}

const changeTypes = ['resource.applied', 'resource.deleted', 'pin.set', 'pin.lifted']
/** Maximum number of events that are read, the newest ones. */
const maxEvents = 5_000

interface MarksParams {
  readonly fromMs: number
  readonly toMs: number
  /** Changes that follow each other more quickly are one mark. */
  readonly apartMs: number
}

/** Returns the marks in order. Events that are not listed yet are left out. */
export function marksModel({ log: { events } }: Moment, params: MarksParams): Mark[] {
  const marks: Mark[] = []
  for (const index of changesIn(events, params)) {
    const timeMs = events.timesMs[index] ?? 0
    const position = events.positions[index] ?? 0
    const object = events.objects.texts[events.objectOf[index] ?? 0] ?? ''
    const before = marks.at(-1)
    if (before === undefined || timeMs - before.timeMs > params.apartMs) {
      marks.push({ timeMs, first: position, last: position, objects: [object] })
    } else {
      const objects = before.objects.includes(object) ? before.objects : [...before.objects, object]
      marks[marks.length - 1] = { ...before, last: position, objects }
    }
  }
  return marks
}

/** Returns the indexes of the changes in a time. */
function changesIn(events: Moment['log']['events'], { fromMs, toMs }: MarksParams): number[] {
  const types = new Set(changeTypes.map((type) => events.types.texts.indexOf(type)))
  const found: number[] = []
  for (let index = events.length - 1; index >= 0 && found.length < maxEvents; index--) {
    const timeMs = events.timesMs[index] ?? Number.NaN
    if (timeMs < fromMs) break
    if (timeMs <= toMs && types.has(events.typeOf[index] ?? 0)) found.push(index)
  }
  return found.reverse()
}
