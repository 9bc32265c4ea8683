import { go, linkTo, place } from '../state/location.ts'
import { useTimeOf } from '../state/moment-time.ts'
import {
  chooseRange,
  durations,
  setRange,
  type TimeRange,
  timesOf,
  useRange,
} from '../state/range.ts'
import { hasSeries } from '../state/series.ts'
import { mayAct } from '../state/served.ts'
import { log } from '../state/worker-client.ts'
import { agoText, isUtc, timeText } from '../ui/times.tsx'
import type { LogState } from '../worker/protocol.ts'

/** Chooses the moment that all views show: after an event of the log, or always the newest. */
export function TimeBar() {
  const { first, last, state, progress, name, count, foldedTo, hasStates } = log.value
  const { position } = place.value
  const isUnknown = state === 'folding' && !hasStates && (position ?? 0) > foldedTo
  const at = Math.min(position ?? last, Math.max(last, 1))
  const timeMs = useTimeOf(at)
  const isPast = position !== undefined && position < last
  const work = works[state]
  const share = state === 'following' ? undefined : progress
  const text = timeMs === undefined ? `event ${at}` : `event ${at}, ${timeText(timeMs)}`
  return (
    <section class="time-bar" aria-label="Moment">
      <button type="button" aria-label="First event" onClick={() => moveTo(first)}>
        |◀
      </button>
      <button type="button" aria-label="Previous event" onClick={() => moveTo(at - 1)}>
        ◀
      </button>
      <input
        type="range"
        min={first}
        max={last}
        step="1"
        value={at}
        aria-label="Event"
        aria-valuetext={text}
        onInput={({ currentTarget }) => go({ position: Number(currentTarget.value) }, true)}
        onChange={({ currentTarget }) => moveTo(Number(currentTarget.value))}
        onKeyDown={(event) => {
          const step = { PageUp: 100, PageDown: -100 }[event.key]
          if (step === undefined) return
          event.preventDefault()
          moveTo(at + step)
        }}
      />
      <button type="button" aria-label="Next event" onClick={() => moveTo(at + 1)}>
        ▶
      </button>
      <button type="button" aria-label="Newest event" onClick={() => go({ position: undefined })}>
        ▶|
      </button>
      <output class="moment">
        <strong>{isPast ? `event ${at}` : 'newest event'}</strong> of {count}
        {isUnknown && ` · states are known up to event ${foldedTo}`}
        {timeMs !== undefined && ` · ${timeText(timeMs)}`}
        {isPast && timeMs !== undefined && ` · ${agoText(timeMs, log.value.lastMs)} before the end`}
      </output>
      {isPast && (
        <a
          class="button"
          href={linkTo(place.value.view, place.value.rest, place.value.params, 'newest')}
        >
          Back to the newest
        </a>
      )}
      {isPast && mayAct() && (
        <a class="button" href={linkTo('held')}>
          Roll back to here
        </a>
      )}
      {hasSeries() && <RangeChoice />}
      <span class="source quiet">
        {name}
        {work !== undefined &&
          ` · ${work}${share === undefined ? '' : ` ${Math.floor(share * 100)} %`}`}
      </span>
    </section>
  )
}

/** Chooses the time that views of traffic show. It ends at the shown moment, or now. */
function RangeChoice() {
  const range = useRange()
  const { fromMs, toMs } = timesOf(range)
  return (
    <>
      <label class="range">
        <span class="unseen">Range of time</span>
        <select
          value={range.duration ?? 'between'}
          title={`${timeText(fromMs)} – ${timeText(toMs)}`}
          onChange={({ currentTarget }) => setRange(currentTarget.value)}
        >
          {Object.entries(durations).map(([value, { title }]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
          {range.duration === undefined && (
            <option value="between">
              {timeText(fromMs).slice(5, 16)} – {timeText(toMs).slice(5, 16)}
            </option>
          )}
        </select>
      </label>
      <label class="range">
        <span class="unseen">Day</span>
        <input
          type="date"
          title="A whole day"
          value={dayOf(range)}
          max={timeText(Date.now()).slice(0, 10)}
          onChange={({ currentTarget }) => chooseDay(currentTarget.value)}
        />
      </label>
    </>
  )
}

const dayMs = 86_400_000
const startOfDay = (day: string) => Date.parse(isUtc.value ? `${day}T00:00Z` : `${day}T00:00`)

/** The chosen day, in the zone that times have; empty if another time is chosen. */
function dayOf({ duration, toMs = 0, lengthMs }: TimeRange): string {
  const day = timeText(toMs - lengthMs).slice(0, 10)
  const isDay = duration === undefined && startOfDay(day) === toMs - lengthMs
  return isDay && lengthMs === dayMs ? day : ''
}

function chooseDay(day: string): void {
  const fromMs = startOfDay(day)
  if (!Number.isNaN(fromMs)) chooseRange(fromMs, fromMs + dayMs)
}

/** What the page does with the log. */
const works: Partial<Record<LogState['state'], string>> = {
  reading: 'reading',
  folding: 'computing states',
  following: 'live',
}

/** Moves to an event; the last one is shown as the newest, and followed. */
export function moveTo(position: number): void {
  const { first, last } = log.value
  const next = Math.max(first, Math.min(last, position))
  go({ position: next === last ? undefined : next })
}
