/** Durations and timestamps in nanoseconds. Timestamps have the range of google.protobuf.Timestamp. */
import { CelError } from './error.ts'

const second = 1_000_000_000n
/** 0001-01-01T00:00:00Z, in nanoseconds since 1970. */
const minTimestamp = -62_135_596_800n * second
/** 9999-12-31T23:59:59.999999999Z, in nanoseconds since 1970. */
const maxTimestamp = 253_402_300_800n * second - 1n
/** Durations are limited to int64 nanoseconds, about 292 years, as in other implementations. */
const maxDuration = 2n ** 63n - 1n

export class CelDuration {
  readonly celType = 'google.protobuf.Duration'
  readonly nanoseconds: bigint

  constructor(nanoseconds: bigint) {
    this.nanoseconds = nanoseconds
  }

  /** Returns seconds with as many decimals as needed, such as `1.5s`. */
  toString(): string {
    const { nanoseconds: value } = this
    const size = value < 0n ? -value : value
    const decimals = fraction(size % second)
    return `${value < 0n ? '-' : ''}${size / second}${decimals}s`
  }
}

export class CelTimestamp {
  readonly celType = 'google.protobuf.Timestamp'
  /** Nanoseconds since 1970-01-01T00:00:00Z. */
  readonly nanoseconds: bigint

  constructor(nanoseconds: bigint) {
    this.nanoseconds = nanoseconds
  }

  /** Milliseconds since 1970, rounded down. */
  get milliseconds(): number {
    return Number(floorDivide(this.nanoseconds, 1_000_000n))
  }

  /** Returns RFC 3339 in UTC, such as `2024-01-02T03:04:05.6Z`. */
  toString(): string {
    const seconds = floorDivide(this.nanoseconds, second)
    const text = new Date(Number(seconds) * 1000).toISOString().slice(0, 19)
    return `${text}${fraction(this.nanoseconds - seconds * second)}Z`
  }

  /** Converts milliseconds since 1970. */
  static fromMilliseconds(milliseconds: number): CelTimestamp {
    return new CelTimestamp(BigInt(Math.round(milliseconds * 1000)) * 1000n)
  }
}

function floorDivide(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor
  return value % divisor < 0n ? quotient - 1n : quotient
}

function fraction(nanoseconds: bigint): string {
  if (nanoseconds === 0n) return ''
  return `.${nanoseconds.toString().padStart(9, '0').replace(/0+$/, '')}`
}

export function makeDuration(nanoseconds: bigint): CelDuration | CelError {
  if (nanoseconds > maxDuration || nanoseconds < -maxDuration) {
    return new CelError('overflow', 'the duration is outside its range')
  }
  return new CelDuration(nanoseconds)
}

export function makeTimestamp(nanoseconds: bigint): CelTimestamp | CelError {
  if (nanoseconds > maxTimestamp || nanoseconds < minTimestamp) {
    return new CelError('overflow', 'the timestamp is outside the years 1 to 9999')
  }
  return new CelTimestamp(nanoseconds)
}

const unitNanoseconds: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1000n,
  µs: 1000n,
  ms: 1_000_000n,
  s: second,
  m: 60n * second,
  h: 3600n * second,
}

const durationPart = /(\d{1,20})(?:\.(\d{0,20}))?(ns|us|\u00b5s|ms|s|m|h)/y

/** Parses a sequence of numbers with units, such as `-1h30m` or `1.5s`; `0` needs no unit. */
export function parseDuration(text: string): CelDuration | CelError {
  const bad = new CelError('value', 'the text is not a duration')
  const isNegative = text.startsWith('-')
  const start = isNegative || text.startsWith('+') ? 1 : 0
  if (text.slice(start) === '0') return new CelDuration(0n)
  if (start === text.length) return bad
  let total = 0n
  durationPart.lastIndex = start
  while (durationPart.lastIndex < text.length) {
    const match = durationPart.exec(text)
    if (match === null) return bad
    const [, whole = '0', decimals = '', unit = 's'] = match
    const scale = unitNanoseconds[unit] ?? second
    total +=
      BigInt(whole) * scale + (BigInt(decimals || '0') * scale) / 10n ** BigInt(decimals.length)
  }
  return makeDuration(isNegative ? -total : total)
}

const timestampForm =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/** Parses RFC 3339 with up to nine decimals. */
export function parseTimestamp(text: string): CelTimestamp | CelError {
  const match = timestampForm.exec(text)
  const bad = new CelError('value', 'the text is not an RFC 3339 timestamp')
  if (match === null) return bad
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, seconds = 0] = match
    .slice(1, 7)
    .map(Number)
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  date.setUTCHours(hour, minute, seconds)
  const isReal = date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  if (!isReal || hour > 23 || minute > 59 || seconds > 59) return bad
  const [decimals = '', sign, zoneHours = '0', zoneMinutes = '0'] = match.slice(7)
  const offset = (Number(zoneHours) * 60 + Number(zoneMinutes)) * (sign === '-' ? -1 : 1)
  const nanoseconds = BigInt(decimals.padEnd(9, '0'))
  return makeTimestamp((BigInt(date.getTime() / 1000) - BigInt(offset * 60)) * second + nanoseconds)
}
