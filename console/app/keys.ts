/** Keys that work in every view. Each is listed in the help. */
import { go, linkTo, place } from '../state/location.ts'
import { ask, log } from '../state/worker-client.ts'
import { moveTo } from './time-bar.tsx'

export const keys: readonly (readonly [key: string, what: string])[] = [
  ['/', 'Search objects, positions and times'],
  ['[ and ]', 'Previous and next event'],
  ['{ and }', 'Previous and next change of the shown object'],
  ['.', 'Newest event'],
  ['d', 'Mark this moment; press it again elsewhere for the difference'],
  ['y', 'Copy a link to what is shown'],
  ['j and k', 'Next and previous row of a list that has the focus'],
  ['?', 'This list'],
]

const isTyping = ({ target }: KeyboardEvent) =>
  target instanceof HTMLElement && target.matches('input:not([type=range]), textarea, select')

export function listenToKeys(showHelp: () => void): () => void {
  const actions: Readonly<Record<string, () => void>> = {
    '/': () => document.getElementById('search')?.focus(),
    '[': () => moveTo(shownPosition() - 1),
    ']': () => moveTo(shownPosition() + 1),
    '{': () => moveToChange(-1),
    '}': () => moveToChange(1),
    '.': () => go({ position: undefined }),
    '?': showHelp,
    d: markForDifference,
    y: copyLink,
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const isPalette = event.key === 'k' && (event.ctrlKey || event.metaKey)
    if (!isPalette && (event.ctrlKey || event.metaKey || event.altKey || isTyping(event))) return
    const action = actions[isPalette ? '/' : event.key]
    if (action === undefined) return
    event.preventDefault()
    action()
  }
  addEventListener('keydown', onKeyDown)
  return () => removeEventListener('keydown', onKeyDown)
}

const shownPosition = () => place.value.position ?? log.value.last

let marked: number | undefined

function markForDifference(): void {
  const present = shownPosition()
  if (marked === undefined || marked === present) {
    marked = present
    return
  }
  const [from, to] = [Math.min(marked, present), Math.max(marked, present)]
  marked = undefined
  location.hash = linkTo('diff', [], { from: `${from}` }, to)
}

/** A link to this place in this log, that opens the same moment later. */
function copyLink(): void {
  const { view, rest, params } = place.value
  const named = { ...params, log: log.value.identity }
  const url = new URL(linkTo(view, rest, named, shownPosition()), location.href)
  navigator.clipboard.writeText(url.href).catch(() => undefined)
}

async function moveToChange(step: 1 | -1): Promise<void> {
  if (place.value.view !== 'object') return
  const [kind = '', namespace = '', name = ''] = place.value.rest
  const subject = `${kind}/${namespace === '_' ? '' : namespace}/${name}`
  const { positions } = await ask('timeline', { subject })
  const present = shownPosition()
  const next =
    step > 0 ? positions.find((at) => at > present) : positions.findLast((at) => at < present)
  if (next !== undefined) moveTo(next)
}
