/** Hours of the day in which other prices apply. */
import type { UtcWindow } from './rates.ts'

export interface Window {
  /** Minutes of the day, UTC; the end may be before the start, and then is on the next day. */
  readonly start: number
  readonly end: number
  /** Days of the week on which the window begins, from 1 (Monday) to 7; every day if undefined. */
  readonly days: readonly number[] | undefined
}

export function readWindow({ hours, days }: UtcWindow): Window {
  const [start = 0, end = 0] = hours.split('-').map(minutesOf)
  return { start, end, days }
}

function minutesOf(text: string): number {
  const [hours = 0, minutes = 0] = text.split(':').map(Number)
  return hours * 60 + minutes
}

const minuteMs = 60_000
const dayMinutes = 24 * 60
/** 1 January 1970 was a Thursday. */
const firstDay = 3

/** Whether a time, in milliseconds since the epoch, is in the window. The end is not part of it. */
export function isWithin({ start, end, days }: Window, time: number): boolean {
  const minutes = Math.floor(time / minuteMs)
  const minute = minutes % dayMinutes
  const wraps = end <= start
  const isIn = wraps ? minute >= start || minute < end : minute >= start && minute < end
  if (!isIn || days === undefined) return isIn
  const beganYesterday = wraps && minute < end
  const day = Math.floor(minutes / dayMinutes) - (beganYesterday ? 1 : 0)
  return days.includes(((day + firstDay) % 7) + 1)
}
