/** Functions that return parts of timestamps, in UTC or in a time zone, and of durations. */
import { CelDuration, CelTimestamp } from '../time.ts'
import type { CelResult, CelValue } from '../value.ts'
import {
  badValue,
  type CelFunction,
  type FunctionTable,
  optionalFrom,
  wrongTypes,
} from './define.ts'

/** Returns a date whose UTC fields are the local fields in the zone; undefined if there is no such zone. */
function inZone(timestamp: CelTimestamp, zone: string): Date | undefined {
  const fixedZone = /^([+-]?)(\d\d):(\d\d)$/.exec(zone)
  if (fixedZone !== null) {
    const [, sign, hours, minutes] = fixedZone
    const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
    return new Date(timestamp.milliseconds + offset * 60_000)
  }
  const offset = zoneOffset(zone, timestamp.milliseconds)
  return offset === undefined ? undefined : new Date(timestamp.milliseconds + offset)
}

const formats = new Map<string, Intl.DateTimeFormat | undefined>()

/** Maximum size of the cache. There are fewer named zones than this. */
const maxFormats = 1000

function formatOf(zone: string): Intl.DateTimeFormat | undefined {
  if (formats.has(zone)) return formats.get(zone)
  let format: Intl.DateTimeFormat | undefined
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    format = undefined
  }
  if (formats.size >= maxFormats) formats.clear()
  formats.set(zone, format)
  return format
}

/** Returns how many milliseconds a zone is ahead of UTC at a time; undefined if there is no such zone. */
function zoneOffset(zone: string, milliseconds: number): number | undefined {
  const format = formatOf(zone)
  if (format === undefined) return undefined
  const parts = Object.fromEntries(
    format.formatToParts(milliseconds).map(({ type, value }) => [type, value]),
  )
  const local = new Date(0)
  const year = Number(parts.year)
  local.setUTCFullYear(
    parts.era === 'BC' ? 1 - year : year,
    Number(parts.month) - 1,
    Number(parts.day),
  )
  local.setUTCHours(Number(parts.hour), Number(parts.minute), Number(parts.second))
  return local.getTime() - Math.floor(milliseconds / 1000) * 1000
}

type OfDate = (date: Date) => number

function partOf(timestamp: CelTimestamp, zone: CelValue | undefined, part: OfDate): CelResult {
  if (zone === undefined) return BigInt(part(new Date(timestamp.milliseconds)))
  if (typeof zone !== 'string') return wrongTypes('a time zone', zone)
  const date = inZone(timestamp, zone)
  return date === undefined ? badValue('there is no such time zone') : BigInt(part(date))
}

/** Defines a method of timestamps, and of durations if `ofDuration` is set. */
function part(
  name: string,
  ofDate: OfDate,
  ofDuration?: (nanoseconds: bigint) => bigint,
): CelFunction {
  return optionalFrom('method', 1, 2, (_, value, zone: CelValue | undefined) => {
    if (value instanceof CelTimestamp) return partOf(value, zone, ofDate)
    const isPart = value instanceof CelDuration && ofDuration !== undefined && zone === undefined
    return isPart ? ofDuration(value.nanoseconds) : wrongTypes(name, value, zone)
  })
}

function dayOfYear(date: Date): number {
  const start = new Date(0)
  start.setUTCFullYear(date.getUTCFullYear(), 0, 1)
  return Math.floor((date.getTime() - start.getTime()) / 86_400_000)
}

export const timeFunctions: FunctionTable = {
  getFullYear: part('getFullYear', (date) => date.getUTCFullYear()),
  getMonth: part('getMonth', (date) => date.getUTCMonth()),
  getDate: part('getDate', (date) => date.getUTCDate()),
  getDayOfMonth: part('getDayOfMonth', (date) => date.getUTCDate() - 1),
  getDayOfWeek: part('getDayOfWeek', (date) => date.getUTCDay()),
  getDayOfYear: part('getDayOfYear', dayOfYear),
  getHours: part(
    'getHours',
    (date) => date.getUTCHours(),
    (value) => value / 3_600_000_000_000n,
  ),
  getMinutes: part(
    'getMinutes',
    (date) => date.getUTCMinutes(),
    (value) => value / 60_000_000_000n,
  ),
  getSeconds: part(
    'getSeconds',
    (date) => date.getUTCSeconds(),
    (value) => value / 1_000_000_000n,
  ),
  getMilliseconds: part(
    'getMilliseconds',
    (date) => date.getUTCMilliseconds(),
    (value) => (value / 1_000_000n) % 1000n,
  ),
}
