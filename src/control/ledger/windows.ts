/** Windows of budgets: which one a time belongs to, and when it ends. */
import type { BudgetWindow } from '../../ground/model/budgets.ts'

const minute = 60_000
const lengths = {
  Minute: minute,
  Hour: 60 * minute,
  Day: 24 * 60 * minute,
  Week: 7 * 24 * 60 * minute,
  Month: 30 * 24 * 60 * minute,
} as const

/** The length of a rolling window, in milliseconds. */
export const lengthOfWindow = ({ unit }: BudgetWindow): number => lengths[unit]

/** Number of slices in a rolling window. A charge counts for at most one slice more than the window. */
const rollingSlices = 60

/** The slice of a time, and the first slice that still counts at that time. Calendar windows have one slice. */
export function slicesAt(
  { type, unit }: BudgetWindow,
  time: number,
): { slice: number; firstSlice: number } {
  if (type === 'Calendar') return { slice: 0, firstSlice: 0 }
  const slice = Math.floor(time / (lengths[unit] / rollingSlices))
  return { slice, firstSlice: slice - rollingSlices }
}

/**
 * Returns when the window that contains `time` ends, in milliseconds of the epoch; undefined for a rolling window,
 * which never ends. Weeks begin on Monday. In a time zone, a day may have 23 or 25 hours.
 */
export function endOfWindow(window: BudgetWindow, time: number): number | undefined {
  if (window.type === 'Rolling') return undefined
  const { unit, timeZone } = window
  if (unit === 'Minute') return (Math.floor(time / minute) + 1) * minute
  const local = localTime(time, timeZone)
  const { year, month, day } = local
  // An hour that daylight saving repeats is one hour of real time, since only its minutes are cut off.
  if (unit === 'Hour') return time - (local.minute * minute + (time % minute)) + 60 * minute
  const weekday = (new Date(Date.UTC(year, month - 1, day)).getUTCDay() + 6) % 7
  const [toYear, toMonth, toDay] =
    unit === 'Day'
      ? [year, month, day + 1]
      : unit === 'Week'
        ? [year, month, day + 7 - weekday]
        : [year, month + 1, 1]
  return fromLocal(Date.UTC(toYear, toMonth - 1, toDay), timeZone, time)
}

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    formats.set(timeZone, format)
  }
  return format
}

function localTime(time: number, timeZone: string) {
  const found: Record<string, number> = {}
  for (const { type, value } of formatOf(timeZone).formatToParts(time)) found[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute: minutes = 0, second = 0 } = found
  return { year, month, day, hour, minute: minutes, second }
}

/** Milliseconds by which the clocks of a time zone are ahead of UTC. */
function offsetAt(time: number, timeZone: string): number {
  const { year, month, day, hour, minute: minutes, second } = localTime(time, timeZone)
  return Date.UTC(year, month - 1, day, hour, minutes, second) - Math.floor(time / 1_000) * 1_000
}

/** Returns the first time after `after` at which local clocks show `wall` or, if they skip it, a later time. */
function fromLocal(wall: number, timeZone: string, after: number): number {
  // The offset may change between the two times, so both candidates are tried.
  const candidates = [
    offsetAt(wall - 24 * 60 * minute, timeZone),
    offsetAt(wall + 24 * 60 * minute, timeZone),
  ]
    .map((offset) => wall - offset)
    .sort((a, b) => a - b)
  const exact = candidates.find((one) => one > after && one + offsetAt(one, timeZone) === wall)
  return exact ?? Math.max(...candidates, after + 1)
}

/** Whether the runtime knows a time zone. */
export function isTimeZone(timeZone: string): boolean {
  try {
    formatOf(timeZone)
    return true
  } catch {
    return false
  }
}
