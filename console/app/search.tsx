import { useState } from 'preact/hooks'
import { objectText, parseObjectKey } from '../../src/ground/model/names.ts'
import { linkTo, objectLink, place } from '../state/location.ts'
import { ask, log } from '../state/worker-client.ts'
import { timeText } from '../ui/times.tsx'
import type { Answer } from '../worker/protocol.ts'

interface Result {
  readonly href: string
  readonly text: string
}

/** Finds objects by parts of their names, and events by position or time. */
export function Search() {
  const [results, setResults] = useState<readonly Result[]>([])
  const [chosen, setChosen] = useState(0)
  const close = () => setResults([])
  const search = async (text: string) => {
    setChosen(0)
    if (text.trim() === '') return close()
    setResults(resultsOf(await ask('search', { text: text.trim() }, place.value.position)))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const input = event.currentTarget as HTMLInputElement
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      setChosen(Math.max(0, Math.min(results.length - 1, chosen + step)))
    }
    const result = results[chosen]
    if (event.key === 'Enter' && result !== undefined) {
      location.hash = result.href
      input.value = ''
      close()
    }
    if (event.key === 'Escape') {
      close()
      input.blur()
    }
  }
  return (
    <search class="search">
      <input
        id="search"
        type="search"
        placeholder="Object, position, time ( / )"
        aria-label="Search objects and events"
        {...comboboxOf(results.length, chosen)}
        disabled={log.value.count === 0}
        autocomplete="off"
        onInput={({ currentTarget }) => search(currentTarget.value).catch(close)}
        onKeyDown={onKeyDown}
        onBlur={() => setTimeout(close, 200)}
      />
      <div id="results" role="listbox" aria-label="Results" hidden={results.length === 0}>
        {results.map(({ href, text }, index) => (
          <a
            key={href}
            id={`result-${index}`}
            href={href}
            role="option"
            aria-selected={index === chosen}
            tabIndex={-1}
          >
            {text}
          </a>
        ))}
      </div>
    </search>
  )
}

/** An input with a list of results. The types of its attributes allow this role only for a `<datalist>`. */
const comboboxOf = (count: number, chosen: number): object => ({
  role: 'combobox',
  'aria-expanded': count > 0,
  'aria-controls': 'results',
  ...(count > 0 && { 'aria-activedescendant': `result-${chosen}` }),
})

function resultsOf({ event, objects }: Answer<'search'>): Result[] {
  const found = objects.map((key) => ({
    href: objectLink(key),
    text: objectText(parseObjectKey(key)),
  }))
  if (event === undefined) return found
  const { position, time, type } = event
  const href = linkTo('event', [`${position}`], {}, position)
  return [{ href, text: `event ${position}, ${timeText(time)}: ${type}` }, ...found]
}
