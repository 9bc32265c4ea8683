/**
 * The place in the console, kept in the fragment of the URL, which servers never see:
 *
 *   #/VIEW/REST…@POSITION?NAME=VALUE&log=IDENTITY
 *
 * Without a position, views follow the newest event. `log` names the log that a copied link is about, and `range` the
 * time that views of traffic show: links within the console keep it.
 */
import { computed, signal } from '@preact/signals'

interface Place {
  readonly view: string
  /** The segments after the view. */
  readonly rest: readonly string[]
  /** Position of the last event of the shown moment; undefined for the newest. */
  readonly position: number | undefined
  readonly params: Readonly<Record<string, string>>
}

function parsePlace(hash: string): Place {
  const parts = /^#?\/?([^?@]*)(?:@(\d+))?(?:\?(.*))?$/s.exec(hash)
  // The page says that there is no such view.
  if (parts === null) return { view: hash, rest: [], position: undefined, params: {} }
  const [, path = '', at, query = ''] = parts
  const [view = '', ...rest] = path.split('/').map(decode)
  const position = at === undefined ? undefined : Number(at)
  return { view, rest, position, params: Object.fromEntries(new URLSearchParams(query)) }
}

/** A link that was edited by hand may have a `%` that encodes nothing. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function formatPlace({ view, rest, position, params }: Place): string {
  const path = [view, ...rest].map((part) => encodeURIComponent(part)).join('/')
  const given = Object.entries(params).filter(([, value]) => value !== '')
  const query = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
  return `#/${path}${position === undefined ? '' : `@${position}`}${query}`
}

export const place = signal<Place>(parsePlace(globalThis.location?.hash ?? ''))
export const position = computed(() => place.value.position)

/** The fragment of a view at the shown moment, unless `at` names another; `'newest'` follows the log. */
export function linkTo(
  view: string,
  rest: readonly string[] = [],
  params: Readonly<Record<string, string>> = {},
  at: number | 'newest' | undefined = place.value.position,
): string {
  const { range = '' } = place.value.params
  const kept = { ...params, range: params.range ?? range }
  return formatPlace({ view, rest, params: kept, position: at === 'newest' ? undefined : at })
}

/** Link to the page of an object, by its key. */
export const objectLink = (
  key: string,
  params: Readonly<Record<string, string>> = {},
  at?: number,
) =>
  linkTo(
    'object',
    key.split('/').map((part) => part || '_'),
    params,
    at ?? place.value.position,
  )

/** Changes a part of the place; `isStep` replaces the entry in the history, as while a slider moves. */
export function go(change: Partial<Place>, isStep = false): void {
  const next = { ...place.value, ...change }
  const hash = formatPlace(next)
  if (hash === formatPlace(place.value)) return
  if (isStep) history.replaceState(null, '', hash)
  else history.pushState(null, '', hash)
  place.value = next
}

/** Sets parameters of the view; empty ones are removed. */
export const setParams = (change: Readonly<Record<string, string>>): void =>
  go({ params: { ...place.value.params, ...change } }, true)

/** Shows the place that the URL names. */
export function readPlace(): void {
  place.value = parsePlace(location.hash)
}

/** Follows links and the history of the browser. */
export function followHistory(): void {
  addEventListener('popstate', readPlace)
  addEventListener('hashchange', readPlace)
}
