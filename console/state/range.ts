/**
 * The range of time that all views of traffic show, as the parameter `range` of the URL: a duration that ends now
 * or at the shown moment, such as `1h`, or two times in ms since 1970, such as `1764430000000-1764433600000`.
 */
import { go, place } from './location.ts'
import { useTimeOf } from './moment-time.ts'
import { log } from './worker-client.ts'

const minuteMs = 60_000

/** The durations to choose from, by the value of the parameter. */
export const durations = {
  '15m': { title: 'Last 15 min', ms: 15 * minuteMs },
  '1h': { title: 'Last hour', ms: 60 * minuteMs },
  '6h': { title: 'Last 6 h', ms: 360 * minuteMs },
  '24h': { title: 'Last 24 h', ms: 1_440 * minuteMs },
  '7d': { title: 'Last 7 days', ms: 7 * 1_440 * minuteMs },
  '30d': { title: 'Last 30 days', ms: 30 * 1_440 * minuteMs },
} as const
type Duration = keyof typeof durations
const defaultDuration: Duration = '15m'

export interface TimeRange {
  /** The chosen duration; undefined for two times. */
  readonly duration: Duration | undefined
  /** Undefined if the range ends now. */
  readonly toMs: number | undefined
  readonly lengthMs: number
  /** When the range begins, if that does not depend on its end. */
  readonly fromMs?: number
}

/** Returns the times of a range at this moment. */
export function timesOf({ toMs = Date.now(), lengthMs, fromMs = toMs - lengthMs }: TimeRange) {
  return { fromMs, toMs }
}

/** The time since a number of days ago, with the whole of the first day, in UTC. */
export function daysUntilNow(days: number): TimeRange {
  const dayMs = 1_440 * minuteMs
  const fromMs = Math.floor(Date.now() / dayMs - days + 1) * dayMs
  return { duration: undefined, toMs: undefined, lengthMs: days * dayMs, fromMs }
}

/** The chosen range. */
export function useRange(): TimeRange {
  const { range = defaultDuration } = place.value.params
  const { position } = place.value
  const { last } = log.value
  const isPast = position !== undefined && position < last
  const momentMs = useTimeOf(position ?? last)
  const [, from, to] = /^(\d{1,14})-(\d{1,14})$/.exec(range) ?? []
  const lengthMs = Number(to) - Number(from)
  if (lengthMs > 0) return { duration: undefined, toMs: Number(to), lengthMs }
  const duration = Object.hasOwn(durations, range) ? (range as Duration) : defaultDuration
  return { duration, toMs: isPast ? momentMs : undefined, lengthMs: durations[duration].ms }
}

/** Shows the time between two times, such as a part of a chart. */
export function chooseRange(fromMs: number, toMs: number): void {
  setRange(`${Math.floor(fromMs)}-${Math.ceil(toMs)}`)
}

export function setRange(range: string): void {
  go({ params: { ...place.value.params, range: range === defaultDuration ? '' : range } })
}
