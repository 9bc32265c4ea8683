/** Runs configured guards on a text in this page. The text is not sent anywhere. */

import { signal } from '@preact/signals'
import type { GuardList } from '../../models/guards.ts'
import { place, setParams } from '../../state/location.ts'
import { Empty, Failure } from '../../ui/states.tsx'
import { TextArea } from '../../ui/text-area.tsx'
import { useCore } from '../playground/core-client.ts'

// What was typed stays while the reader looks at another view.
const tried = signal('Please write to ann@example.com')

const nameOf = ({ phase, policy, target }: GuardList) => `${phase} guards of ${policy} on ${target}`

export function TryText({ lists }: { lists: readonly GuardList[] }) {
  const { guards: chosen } = place.value.params
  const list = lists.find((one) => nameOf(one) === chosen) ?? lists[0]
  return (
    <section class="card" aria-labelledby="try-text">
      <h2 id="try-text">Try a text</h2>
      {list === undefined ? (
        <Empty>No policy has prompt guards at this moment.</Empty>
      ) : (
        <>
          <p>
            <label for="tried-guards">Guards</label>{' '}
            <select
              id="tried-guards"
              class="fits"
              value={nameOf(list)}
              onChange={({ currentTarget }) => setParams({ guards: currentTarget.value })}
            >
              {lists.map((one) => (
                <option key={nameOf(one)}>{nameOf(one)}</option>
              ))}
            </select>{' '}
            <span class="quiet">The text stays in this page.</span>
          </p>
          <div class="pair">
            <div>
              <label for="tried-text">Text</label>
              <TextArea id="tried-text" rows={6} text={tried} />
            </div>
            <Outcome list={list} />
          </div>
        </>
      )}
    </section>
  )
}

const texts = {
  allow: 'finds nothing',
  mask: 'masks',
  reject: 'refuses',
  skipped: 'asks a service, and is not tried here',
} as const

function Outcome({ list: { guards, phase } }: { list: GuardList }) {
  const { value, error } = useCore('guards', { guards, phase, text: tried.value })
  if (error !== undefined) return <Failure message={error} />
  return (
    <div aria-live="polite">
      <ol>
        {value?.tried.map(({ type, outcome, matches, refusal }, at) => (
          <li key={at}>
            guard {at} ({type}): <strong>{texts[outcome]}</strong>
            {matches > 0 && ` (${matches} ${matches === 1 ? 'match' : 'matches'})`}
            {refusal !== undefined && `, with ${refusal.status}: ${refusal.message}`}
          </li>
        ))}
      </ol>
      {value?.text !== undefined && (
        <>
          <span id="guarded-label">What goes on</span>
          <output class="guarded" aria-labelledby="guarded-label">
            {value.text}
          </output>
        </>
      )}
    </div>
  )
}
