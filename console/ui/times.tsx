/** Times, all in one zone. */
import { signal } from '@preact/signals'

const zoneKey = 'sluice-console-zone'

/** Whether times are shown in UTC rather than in the zone of the browser. */
export const isUtc = signal(globalThis.localStorage?.getItem(zoneKey) !== 'local')

export function toggleZone(): void {
  isUtc.value = !isUtc.value
  localStorage.setItem(zoneKey, isUtc.value ? 'utc' : 'local')
}

const two = (number: number) => String(number).padStart(2, '0')

export function timeText(time: string | number): string {
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return ''
  if (isUtc.value) return `${date.toISOString().slice(0, 19).replace('T', ' ')}Z`
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

const units = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const

/** How long before another time, such as `6 h`. */
export function agoText(time: string | number, now: number): string {
  const seconds = Math.max(0, Math.round((now - new Date(time).getTime()) / 1000))
  const [size, unit] = units.find(([one]) => seconds >= one) ?? [1, 's']
  return `${Math.floor(seconds / size)} ${unit}`
}

export const Time = ({ time, now }: { time: string | number; now?: number }) => (
  <time class="time" dateTime={new Date(time).toISOString()}>
    {timeText(time)}
    {now !== undefined && <span class="quiet"> ({agoText(time, now)} before)</span>}
  </time>
)
